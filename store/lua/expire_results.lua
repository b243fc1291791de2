-- Drops the oldest ended operations of a session that are both surplus to the `kept` newest and ended before `before`, so
-- many at a time that the server is not held up. Returns how many.
local session, kept, before = unpack(ARGV)
local surplus = redis.call('ZCARD', keys.results(session)) - tonumber(kept)
if surplus <= 0 then return 0 end
local dropped = redis.call('ZRANGEBYSCORE', keys.results(session), '-inf', before, 'LIMIT', 0, math.min(surplus, 1000))
for _, id in ipairs(dropped) do
  redis.call('ZREM', keys.results(session), id)
  redis.call('HSET', keys.operation(id), 'expired', '1')
  forget_operation(session, id)
end
if #dropped > 0 then redis.call('HSET', keys.session(session), 'has_expired', '1') end
return #dropped
