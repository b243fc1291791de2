-- worker, announcement, sessions that it may hold, bytes that it has for adapters: returns the time, for whoever compares
-- heartbeats
local worker, announcement, capacity, memory = unpack(ARGV)
local at = now()
redis.call('ZADD', keys.workers, at, worker)
redis.call('HSET', keys.worker(worker), 'announcement', announcement, 'capacity', capacity, 'memory', memory)
return at
