-- A heartbeat: what the worker says of itself, the sessions that it may hold and the bytes that it has for adapters. Returns
-- the time, for whoever compares heartbeats.
local worker, announcement, capacity, memory = unpack(ARGV)
local at = now()
redis.call('ZADD', keys.workers, at, worker)
redis.call('HSET', keys.worker(worker), 'announcement', announcement, 'capacity', capacity, 'memory', memory)
return at
