-- The checkpoint is in no list from now on; its objects go when no session needs them. Deleting twice is deleting once.
local id = unpack(ARGV)
local record = redis.call('HMGET', keys.checkpoint(id), 'owner', 'session', 'kind', 'deleted')
if not record[1] or record[4] then return 0 end
for _, scope in ipairs(checkpoint_scopes(record[1], record[2], record[3])) do
  redis.call('ZREM', keys.checkpoints(scope), id)
end
redis.call('HSET', keys.checkpoint(id), 'deleted', '1')
forget_if_unused(id)
return 1
