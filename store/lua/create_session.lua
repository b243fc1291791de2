-- session, operation, spec, worker, answer key, digest, checkpoint to go on from (or ''), its object, its step
local session, operation, spec, worker, answer_key, digest, checkpoint, snapshot, step = unpack(ARGV)
-- The client library sends a script again when a connection broke before the reply.
if redis.call('EXISTS', keys.session(session)) == 1 then return {'accepted', {}} end
local first = known(answer_key, digest)
if first then return first end
if checkpoint ~= '' then
  local record = redis.call('HMGET', keys.checkpoint(checkpoint), 'record', 'deleted')
  if not record[1] or record[2] then return {'gone'} end
  redis.call('SADD', keys.checkpoint_sessions(checkpoint), session)
  redis.call('HSET', keys.session(session), 'snapshot', snapshot, 'snapshot_of', checkpoint, 'covered', 0)
end
local at = now()
redis.call('HSET', keys.session(session), 'spec', spec, 'status', 'CREATING', 'step', step,
  'created_at', at, 'updated_at', at, 'worker', worker, 'epoch', 1, 'next_seq', 0)
redis.call('ZADD', keys.sessions, at, session)
redis.call('ZADD', keys.sessions_with('CREATING'), at, session)
give(session, worker)
append(session, operation, 'create-session', '', at)
remember(answer_key, digest, session, session)
return {'accepted', release(session, 1, {})}
