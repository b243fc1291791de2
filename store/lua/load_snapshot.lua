-- The path of the session's snapshot, whether that is a checkpoint, the last change, and what is to be replayed after it, all
-- at one moment.
local session = unpack(ARGV)
local record = redis.call('HMGET', keys.session(session), 'snapshot', 'snapshot_of', 'last_change')
local reply = {record[1] or '', record[2] and 1 or 0, record[3] or ''}
for _, id in ipairs(redis.call('ZRANGE', keys.replay(session), 0, -1)) do
  reply[#reply + 1] = redis.call('HMGET', keys.operation(id), 'kind', 'seq', 'request')
end
return reply
