-- session, operation, spec, worker, answer key, digest, owner, most sessions of a key,
-- checkpoint to go on from (or ''), its object, the step to begin with, model resources (or ''), labels
local session, operation, spec, worker, answer_key, digest, owner, most_sessions, checkpoint, snapshot, step, resources,
  labels =  unpack(ARGV)
-- The client library sends a script again when a connection broke before the reply.
if redis.call('EXISTS', keys.session(session)) == 1 then return {'accepted', {}} end
local first = known(answer_key, digest)
if first then return first end
if resources ~= '' and redis.call('HGET', keys.resources(resources), 'status') ~= 'READY' then return {'stopped'} end
local unended = 0
for _, status in ipairs({'CREATING', 'RUNNING', 'STOPPING'}) do
  unended = unended + redis.call('ZCARD', keys.owner_sessions_with(owner, status))
end
local most = limit_of(owner, 'max_sessions', most_sessions)
if unended >= most then return {'full', most} end
if checkpoint ~= '' then
  local record = redis.call('HMGET', keys.checkpoint(checkpoint), 'record', 'deleted')
  if not record[1] or record[2] then return {'gone'} end
  redis.call('SADD', keys.checkpoint_sessions(checkpoint), session)
  redis.call('HSET', keys.session(session), 'snapshot', snapshot, 'snapshot_of', checkpoint, 'covered', 0)
end
local at = now()
redis.call('HSET', keys.session(session), 'spec', spec, 'owner', owner, 'status', 'CREATING', 'step', step,
  'published', step, 'labels', labels,  'created_at', at, 'updated_at', at, 'worker', worker, 'epoch', 1, 'next_seq', 0)
redis.call('ZADD', keys.sessions_with('CREATING'), at, session)
redis.call('ZADD', keys.owner_sessions(owner), at, session)
redis.call('ZADD', keys.owner_sessions_with(owner, 'CREATING'), at, session)
if resources ~= '' then
  redis.call('HSET', keys.session(session), 'resources', resources)
  redis.call('SADD', keys.resources_sessions(resources), session)
end
give(session, worker)
append(session, operation, 'create-session', '', at)
remember(answer_key, digest, session, session)
return {'accepted', release(session, 1, {})}
