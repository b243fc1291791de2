-- The snapshot holds what the operations up to `seq` made of the adapter, the last of them being `id`, run under `claim`.
local session, snapshot, seq, id, claim = unpack(ARGV)
local record = redis.call('HMGET', keys.session(session), 'status', 'covered', 'snapshot')
-- Asked again, when the reply was lost.
if record[3] == snapshot then
  redis.call('ZREM', keys.unreferenced, snapshot)
  return 1
end
local stale = record[2] and tonumber(record[2]) >= tonumber(seq)
if is_ended[record[1]] or stale then return 0 end
-- A server that came back with less than it had told may have lost its end: it runs again, or another takes its place.
if redis.call('HGET', keys.operation(id), 'finished_by') ~= claim then return 0 end
drop_snapshot(session)
redis.call('ZREM', keys.unreferenced, snapshot)
redis.call('HSET', keys.session(session), 'snapshot', snapshot, 'covered', seq)
forget_replay(session, seq)
count('snapshots')
return 1
