-- The session takes no new operations: the running one finishes, waiting ones end, then `id` (a stop-session) frees the
-- adapter, and the session ends in the status `final`. With `idle_since`, only if it has done nothing since then.
-- Stopping twice is stopping once.
local session, id, reason, idle_since, final = unpack(ARGV)
local record = redis.call('HMGET', keys.session(session), 'status', 'updated_at')
if not record[1] then return {'unknown'} end
if not is_active[record[1]] then return {'stopped', {}} end
if idle_since ~= '' then
  local busy = redis.call('ZCARD', keys.session_queue(session)) > 0
  if busy or tonumber(record[2]) > tonumber(idle_since) then return {'busy', {}} end
end
local at = now()
for _, waiting in ipairs(redis.call('ZRANGE', keys.session_queue(session), 0, -1)) do
  local kind = redis.call('HGET', keys.operation(waiting), 'kind')
  if kind ~= 'create-session' and move(waiting, 'abandon') then
    failed(waiting, session, at, 'SESSION_NOT_ACTIVE', 'the session was stopped before this operation began')
  end
end
redis.call('HSET', keys.session(session), 'final', final)
set_status(session, 'STOPPING', at, reason)
append(session, id, 'stop-session', '', at)
return {'stopped', release(session, 1, {})}
