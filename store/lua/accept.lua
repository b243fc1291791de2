-- Adds an operation to the end of its session's queue. `uploaded_in` and `timeout` are in seconds, `trace` is where the
-- trace of its request stands; '' stands for none. Answers with the fields of its record that follow these arguments.
local session, id, kind, request, idempotency_key, digest, most_waiting, most_samples, most_of_key,
  trace, uploaded_in, timeout = unpack(ARGV)
local function accepted(released)
  return {'accepted', released, redis.call('HMGET', keys.operation(id), unpack(ARGV, 13))}
end
-- Gives up the request's object for good: a copy of this call that comes late must not accept what has none.
local function refused(reply)
  refer_to(request)
  discard(request)
  return reply
end
-- The client library sends a script again when a connection broke before the reply.
if redis.call('EXISTS', keys.operation(id)) == 1 then return accepted({}) end
local record = redis.call('HMGET', keys.session(session), 'status', 'reason', 'owner')
local status, owner = record[1], record[3]
if not status then return refused({'unknown'}) end
local first = known(idempotency_key, digest)
if first then return refused(first) end
if not is_active[status] then return refused({'inactive', status, record[2] or ''}) end
if redis.call('ZCARD', keys.session_queue(session)) >= tonumber(most_waiting) then return refused({'full'}) end
local most = limit_of(owner, 'max_waiting', most_of_key)
if redis.call('SCARD', keys.owner_waiting(owner)) >= most then return refused({'owner-full', most}) end
if is_given_up(request) then return {'full'} end
local at = now()
append(session, id, kind, request, at)
redis.call('HSET', keys.operation(id), 'uploaded_in', uploaded_in)
if timeout ~= '' then redis.call('HSET', keys.operation(id), 'timeout', timeout) end
if trace ~= '' then redis.call('HSET', keys.operation(id), 'trace', trace) end
redis.call('ZADD', keys.operations(session), redis.call('HGET', keys.operation(id), 'seq'), id)
redis.call('SADD', keys.owner_waiting(owner), id)
redis.call('HSET', keys.session(session), 'updated_at', at)
remember(idempotency_key, digest, id, session)
return accepted(release(session, tonumber(most_samples), {}))
