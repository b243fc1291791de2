-- worker, announcement: returns the time, for whoever compares heartbeats
local worker, announcement = unpack(ARGV)
local at = now()
redis.call('ZADD', keys.workers, at, worker)
redis.call('SET', keys.worker(worker), announcement)
return at
