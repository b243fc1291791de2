-- session, newest results to keep, ended before: drops the oldest results that are both surplus and old, so many at a time
-- that the server is not held up; how many that were
local session, kept, before = unpack(ARGV)
local surplus = redis.call('ZCARD', keys.results(session)) - tonumber(kept)
if surplus <= 0 then return 0 end
local dropped = redis.call('ZRANGEBYSCORE', keys.results(session), '-inf', before, 'LIMIT', 0, math.min(surplus, 1000))
for _, id in ipairs(dropped) do
  discard(redis.call('HGET', keys.operation(id), 'result'))
  redis.call('HDEL', keys.operation(id), 'result')
  redis.call('HSET', keys.operation(id), 'expired', '1')
  redis.call('ZREM', keys.results(session), id)
end
return #dropped
