-- Shared by every script; store/scripts.py puts the tables of Python before it.

local function now()
  local time = redis.call('TIME')
  return string.format('%.6f', tonumber(time[1]) + tonumber(time[2]) / 1e6)
end

-- Gives a session to a worker. One that has been forgotten meanwhile is known again, as one that has left:
-- so whatever a worker holds, somebody will notice that it is gone.
local function give(session, worker)
  redis.call('SADD', keys.worker_sessions(worker), session)
  redis.call('ZADD', keys.workers, 'NX', 0, worker)
end

-- Moves an operation if the table allows it; returns whether it did.
local function move(id, name)
  local state = redis.call('HGET', keys.operation(id), 'state')
  if not state or not moves[name].from[state] then return false end
  redis.call('HSET', keys.operation(id), 'state', moves[name].to)
  return true
end

-- What an owner may have of something: what its API key says, else the server's default; 0 is no limit.
local function limit_of(owner, name, default)
  local most = tonumber(redis.call('HGET', keys.api_key(owner), name) or default)
  return most > 0 and most or math.huge
end

-- Releases what may run now: the operations at the head of the queue that only read weights, together, up to `most`, or
-- else the one operation at its head.
-- Appends {id, kind, worker, trace} for each to `released`; the last is false for one that has none.
local function release(session, most, released)
  local worker = redis.call('HGET', keys.session(session), 'worker')
  local head = redis.call('ZRANGE', keys.session_queue(session), 0, most - 1)
  for place, id in ipairs(head) do
    local record = redis.call('HMGET', keys.operation(id), 'kind', 'trace')
    local kind, trace = record[1], record[2]
    if not only_reads[kind] and place > 1 then break end
    if move(id, 'release') then
      redis.call('ZADD', keys.due, now(), id)
      released[#released + 1] = {id, kind, worker, trace}
    end
    if not only_reads[kind] then break end
  end
  return released
end

-- A payload that is no longer wanted; what lies in object storage is noted for the janitor.
local function discard(payload)
  if payload and payload:sub(1, 1) == '>' then redis.call('SADD', keys.garbage, payload:sub(2)) end
end

-- A record is to refer to this payload: its object, if it has one, stays from now on.
local function refer_to(payload)
  if payload:sub(1, 1) == '>' then redis.call('ZREM', keys.unreferenced, payload:sub(2)) end
end

-- Whether the object of a payload that no record refers to yet is not to be kept either.
local function is_given_up(payload)
  return payload:sub(1, 1) == '>' and not redis.call('ZSCORE', keys.unreferenced, payload:sub(2))
end

-- Forgets a deleted checkpoint for good, once no session needs its objects.
local function forget_if_unused(checkpoint)
  local key = keys.checkpoint(checkpoint)
  local record = redis.call('HMGET', key, 'deleted', 'folder')
  if not record[1] or redis.call('SCARD', keys.checkpoint_sessions(checkpoint)) > 0 then return end
  redis.call('SADD', keys.garbage, record[2])
  redis.call('DEL', key)
end

-- A session that goes on from a checkpoint has its object as the first snapshot, which is not the session's own.
local function drop_snapshot(session)
  local record = redis.call('HMGET', keys.session(session), 'snapshot', 'snapshot_of')
  redis.call('HDEL', keys.session(session), 'snapshot', 'snapshot_of')
  if record[2] then
    redis.call('SREM', keys.checkpoint_sessions(record[2]), session)
    forget_if_unused(record[2])
  elseif record[1] then
    redis.call('SADD', keys.garbage, record[1])
  end
end

-- The indexes that a checkpoint is in: that of all, and its owner's.
local function checkpoint_scopes(owner, session, kind)
  local own = owner .. ':'
  return {'::', own .. ':', own .. session .. ':', own .. ':' .. kind, own .. session .. ':' .. kind}
end

local function drop_request(id)
  discard(redis.call('HGET', keys.operation(id), 'request'))
  redis.call('HDEL', keys.operation(id), 'request')
end

-- Drops a request that neither a replay needs nor a page shows.
local function drop_if_unneeded(session, id)
  if redis.call('ZSCORE', keys.replay(session), id) or redis.call('ZSCORE', keys.requests(session), id) then return end
  drop_request(id)
end

-- Removes an expired operation, but for what a replay needs of it.
local function forget_operation(session, id)
  discard(redis.call('HGET', keys.operation(id), 'result'))
  redis.call('HDEL', keys.operation(id), 'result')
  redis.call('ZREM', keys.requests(session), id)
  if redis.call('ZSCORE', keys.replay(session), id) then return end
  drop_request(id)
  redis.call('DEL', keys.operation(id))
  redis.call('ZREM', keys.operations(session), id)
end

-- Adds one to what the server has counted; store/counters.py takes the fields apart.
local function count(field)
  redis.call('HINCRBY', keys.counters, field, 1)
end

local function observe(name, kind, seconds)
  local place = '+Inf'
  for _, bound in ipairs(buckets) do
    if seconds <= bound then
      place = bound
      break
    end
  end
  count(name .. ':' .. kind .. ':' .. place)
  redis.call('HINCRBYFLOAT', keys.counters, name .. ':' .. kind .. ':sum', string.format('%.6f', seconds))
end

-- What every end of an operation has in common, once it has been moved.
local function ended(id, session, at)
  local record = redis.call('HMGET', keys.operation(id), 'kind', 'state', 'created_at', 'started_at', 'error_code')
  redis.call('HSET', keys.operation(id), 'ended_at', at)
  redis.call('ZREM', keys.session_queue(session), id)
  redis.call('SREM', keys.owner_waiting(redis.call('HGET', keys.session(session), 'owner')), id)
  redis.call('ZREM', keys.due, id)
  count('ended:' .. record[1] .. ':' .. record[2])
  if record[5] then count('failed:' .. record[1] .. ':' .. record[5]) end
  observe('waiting', record[1], (record[4] or at) - record[3])
  if record[4] then observe('running', record[1], at - record[4]) end
  redis.call('PUBLISH', keys.ended_channel, id)
  if is_public[record[1]] then
    redis.call('ZADD', keys.results(session), at, id)
  else
    -- It is in no list that a user sees, so nothing else would remove it.
    redis.call('EXPIRE', keys.operation(id), 86400)
  end
end

local function failed(id, session, at, code, message)
  drop_request(id)
  redis.call('HSET', keys.operation(id), 'error_code', code, 'error_message', message)
  ended(id, session, at)
end

-- Where an owner's sessions are listed: those of model resources apart from the others, since each API lists its own.
local function list_of(owner, resources)
  if not resources or resources == '' then return owner end
  return owner .. ':resources'
end

local function set_status(session, status, at, reason)
  local key = keys.session(session)
  local record = redis.call('HMGET', key, 'status', 'created_at', 'owner', 'resources')
  local before, created_at, list = record[1], record[2], list_of(record[3], record[4])
  redis.call('ZREM', keys.sessions_with(before), session)
  redis.call('ZREM', keys.owner_sessions_with(list, before), session)
  redis.call('ZADD', keys.sessions_with(status), created_at, session)
  redis.call('ZADD', keys.owner_sessions_with(list, status), created_at, session)
  redis.call('HSET', key, 'status', status, 'updated_at', at)
  if reason ~= '' then redis.call('HSET', key, 'reason', reason) end
end

-- Drops the requests of finished operations up to `seq`: a snapshot covers them, or nobody needs them any more.
local function forget_replay(session, seq)
  local covered = redis.call('ZRANGEBYSCORE', keys.replay(session), '-inf', seq)
  redis.call('ZREMRANGEBYSCORE', keys.replay(session), '-inf', seq)
  for _, id in ipairs(covered) do
    if redis.call('HEXISTS', keys.operation(id), 'expired') == 1 then
      forget_operation(session, id)
    else
      drop_if_unneeded(session, id)
    end
  end
end

-- Model resources look at their active sessions only; of the ended ones they know the last end.
local function leave_resources(session, at)
  local resources = redis.call('HGET', keys.session(session), 'resources')
  if not resources then return end
  redis.call('SREM', keys.resources_sessions(resources), session)
  redis.call('HSET', keys.resources(resources), 'used_at', at)
end

-- Ends a session, and with it every operation of its queue that `name` may move.
local function end_session(session, status, at, reason, name, code, message)
  set_status(session, status, at, reason)
  redis.call('ZADD', keys.sessions_ended, at, session)
  leave_resources(session, at)
  forget_replay(session, '+inf')
  drop_snapshot(session)
  redis.call('SREM', keys.worker_sessions(redis.call('HGET', keys.session(session), 'worker')), session)
  for _, id in ipairs(redis.call('ZRANGE', keys.session_queue(session), 0, -1)) do
    if move(id, name) then failed(id, session, at, code, message) end
  end
end

-- Puts a new operation at the end of the queue.
local function append(session, id, kind, request, at)
  local seq = redis.call('HINCRBY', keys.session(session), 'next_seq', 1) - 1
  redis.call('HSET', keys.operation(id), 'session', session, 'kind', kind, 'seq', seq,
    'state', 'WAITING', 'created_at', at, 'request', request)
  refer_to(request)
  count('accepted:' .. kind)
  redis.call('ZADD', keys.session_queue(session), seq, id)
end

-- An Idempotency-Key that is known: {'existing', id} or {'reused'}; nil when it is new (or none).
local function known(idempotency_key, digest)
  if idempotency_key == '' then return nil end
  local record = redis.call('HMGET', idempotency_key, 'digest', 'id')
  if not record[1] then return nil end
  if record[1] ~= digest then return {'reused'} end
  if record[2] then return {'existing', record[2]} end
  return nil
end

-- It lives as long as the session, or a day where there is none.
local function remember(idempotency_key, digest, id, session)
  if idempotency_key == '' then return end
  redis.call('HSET', idempotency_key, 'digest', digest, 'id', id)
  if session then redis.call('SADD', keys.session_idempotency(session), idempotency_key) else redis.call('EXPIRE', idempotency_key, 86400) end
end
