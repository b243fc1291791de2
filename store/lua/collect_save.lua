-- The folder is garbage unless the claim is still writing to it.
local folder, id, claim = unpack(ARGV)
local record = redis.call('HMGET', keys.operation(id), 'state', 'claim')
if record[1] == 'RUNNING' and record[2] == claim then return 0 end
if redis.call('ZREM', keys.saves, folder) == 1 then
  redis.call('SADD', keys.garbage, folder)
  -- A late worker may write to it still, and die before it is refused.
  redis.call('ZADD', keys.collected, now(), folder)
end
return 1
