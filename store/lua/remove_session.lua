-- session, seconds that its answers live on: removes an ended session whole
local session, answers_live = unpack(ARGV)
local key = keys.session(session)
local status, owner, resources = unpack(redis.call('HMGET', key, 'status', 'owner', 'resources'))
if not is_ended[status] then return 0 end
for _, id in ipairs(redis.call('ZRANGE', keys.operations(session), 0, -1)) do
  discard(redis.call('HGET', keys.operation(id), 'result'))
  drop_request(id)
  redis.call('DEL', keys.operation(id))
end
for _, answer in ipairs(redis.call('SMEMBERS', keys.answers(session))) do
  redis.call('EXPIRE', answer, answers_live)
end
redis.call('DEL', key, keys.lane(session), keys.operations(session), keys.results(session), keys.replay(session),
  keys.answers(session), keys.curve(session), keys.logged(session), keys.logged_names(session), keys.requests(session))
redis.call('ZREM', keys.owner_sessions(list_of(owner, resources)), session)
if resources then redis.call('HINCRBY', keys.resources(resources), 'sessions', -1) end
redis.call('ZREM', keys.owner_sessions_with(list_of(owner, resources), status), session)
redis.call('ZREM', keys.sessions_with(status), session)
redis.call('ZREM', keys.sessions_ended, session)
return 1
