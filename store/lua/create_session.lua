-- Makes a session on the first of the workers that follow these arguments which has room for it, and its first operation.
-- It goes on from `checkpoint`, whose object is `snapshot`, or from none (''); `step` is the one to begin with. `size` are
-- the bytes of its adapter, `needed` those of the adapter and the work on it. `timeout` is in seconds, '' for none.
local session, operation, spec, idempotency_key, digest, owner, most_sessions, checkpoint, snapshot, step, resources,
  labels, size, needed, timeout = unpack(ARGV)

-- Bytes of the adapters that a worker is yet to create, which no measurement of its shows.
local function promised(worker)
  local bytes = 0
  for _, other in ipairs(redis.call('ZRANGE', keys.sessions_with('CREATING'), 0, -1)) do
    local record = redis.call('HMGET', keys.session(other), 'worker', 'adapter_bytes')
    if record[1] == worker then bytes = bytes + tonumber(record[2]) end
  end
  return bytes
end

local function has_room(worker)
  local said = redis.call('HMGET', keys.worker(worker), 'capacity', 'memory')
  -- One that has been forgotten meanwhile is noticed when it is given something.
  if not said[1] then return true end
  if redis.call('SCARD', keys.worker_sessions(worker)) >= tonumber(said[1]) then return false end
  return promised(worker) + tonumber(needed) <= tonumber(said[2])
end

-- The client library sends a script again when a connection broke before the reply.
if redis.call('EXISTS', keys.session(session)) == 1 then return {'accepted', {}} end
local first = known(idempotency_key, digest)
if first then return first end
if resources ~= '' and redis.call('HGET', keys.resources(resources), 'status') ~= 'READY' then return {'stopped'} end
local worker
for place = 16, #ARGV do
  if not worker and has_room(ARGV[place]) then worker = ARGV[place] end
end
if not worker then return {'no-room'} end
local unended = 0
for _, status in ipairs(statuses) do
  for _, list in ipairs({list_of(owner), list_of(owner, true)}) do
    if not is_ended[status] then unended = unended + redis.call('ZCARD', keys.owner_sessions_with(list, status)) end
  end
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
  'published', step, 'labels', labels, 'adapter_bytes', size, 'created_at', at, 'updated_at', at, 'worker', worker,
  'epoch', 1, 'next_seq', 0)
redis.call('ZADD', keys.sessions_with('CREATING'), at, session)
redis.call('ZADD', keys.owner_sessions(list_of(owner, resources)), at, session)
redis.call('ZADD', keys.owner_sessions_with(list_of(owner, resources), 'CREATING'), at, session)
if resources ~= '' then
  redis.call('HSET', keys.session(session), 'resources', resources)
  redis.call('SADD', keys.resources_sessions(resources), session)
  redis.call('HINCRBY', keys.resources(resources), 'sessions', 1)
end
give(session, worker)
append(session, operation, 'create-session', '', at)
if timeout ~= '' then redis.call('HSET', keys.operation(operation), 'timeout', timeout) end
remember(idempotency_key, digest, session, session)
return {'accepted', release(session, 1, {})}
