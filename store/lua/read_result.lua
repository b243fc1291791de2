-- An operation's result, for a client; when that was first read is kept.
local id = unpack(ARGV)
local key = keys.operation(id)
local result = redis.call('HGET', key, 'result')
-- A server that takes no writes just now can be read all the same.
if result then redis.pcall('HSETNX', key, 'read_at', now()) end
return result
