-- Removes an ended session whole; its Idempotency-Keys live on for so many seconds.
local session, idempotency_seconds = unpack(ARGV)
local key = keys.session(session)
local status, owner, resources = unpack(redis.call('HMGET', key, 'status', 'owner', 'resources'))
if not is_ended[status] then return 0 end
for _, id in ipairs(redis.call('ZRANGE', keys.operations(session), 0, -1)) do
  discard(redis.call('HGET', keys.operation(id), 'result'))
  drop_request(id)
  redis.call('DEL', keys.operation(id))
end
for _, answer in ipairs(redis.call('SMEMBERS', keys.session_idempotency(session))) do
  redis.call('EXPIRE', answer, idempotency_seconds)
end
redis.call('DEL', key, keys.session_queue(session), keys.operations(session), keys.results(session), keys.replay(session),
  keys.session_idempotency(session), keys.series(session), keys.logged(session), keys.logged_names(session), keys.requests(session))
redis.call('ZREM', keys.owner_sessions(list_of(owner, resources)), session)
if resources then redis.call('HINCRBY', keys.resources(resources), 'sessions', -1) end
redis.call('ZREM', keys.owner_sessions_with(list_of(owner, resources), status), session)
redis.call('ZREM', keys.sessions_with(status), session)
redis.call('ZREM', keys.sessions_ended, session)
return 1
