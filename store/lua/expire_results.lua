-- session, newest results to keep, ended before: drops the results that are both surplus and old
local session, kept, before = unpack(ARGV)
local surplus = redis.call('ZRANGE', keys.results(session), 0, -(tonumber(kept) + 1))
local dropped = 0
for _, id in ipairs(surplus) do
  if tonumber(redis.call('ZSCORE', keys.results(session), id)) > tonumber(before) then break end
  discard(redis.call('HGET', keys.operation(id), 'result'))
  redis.call('HDEL', keys.operation(id), 'result')
  redis.call('HSET', keys.operation(id), 'expired', '1')
  redis.call('ZREM', keys.results(session), id)
  dropped = dropped + 1
end
return dropped
