-- session, worker, epoch, snapshot, seq: the snapshot holds what the operations up to `seq` made of the adapter
local session, worker, epoch, snapshot, seq = unpack(ARGV)
local record = redis.call('HMGET', keys.session(session), 'worker', 'epoch', 'status', 'covered', 'snapshot', 'next_seq')
-- Asked again, when the reply was lost.
if record[5] == snapshot then
  redis.call('ZREM', keys.unreferenced, snapshot)
  return 1
end
local stale = record[4] and tonumber(record[4]) >= tonumber(seq)
if record[1] ~= worker or record[2] ~= epoch or is_ended[record[3]] or stale then return 0 end
-- A server that came back with less than it had told may have lost their end, or that they were accepted: they will run.
local unended = redis.call('ZRANGEBYSCORE', keys.lane(session), '-inf', seq, 'LIMIT', 0, 1)
if #unended > 0 or tonumber(record[6]) <= tonumber(seq) then return 0 end
drop_snapshot(session)
redis.call('ZREM', keys.unreferenced, snapshot)
redis.call('HSET', keys.session(session), 'snapshot', snapshot, 'covered', seq)
forget_replay(session, seq)
count('snapshots')
return 1
