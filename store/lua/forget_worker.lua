-- Forgets a worker that holds nothing, at this very moment.
local worker = unpack(ARGV)
if redis.call('SCARD', keys.worker_sessions(worker)) > 0 then return 0 end
redis.call('ZREM', keys.workers, worker)
redis.call('DEL', keys.worker(worker))
return 1
