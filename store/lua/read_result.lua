-- operation. Its result, for a client; when that was first read is kept.
local key = keys.operation(ARGV[1])
local result = redis.call('HGET', key, 'result')
if result then redis.call('HSETNX', key, 'read_at', now()) end
return result
