-- Gives a session of a lost worker to another. Whatever the lost one still says of it is refused: its claims are void.
local session, lost, new, most_attempts, most_samples = unpack(ARGV)
local record = redis.call('HMGET', keys.session(session), 'worker', 'status')
if record[1] ~= lost then return {'refused'} end
redis.call('SREM', keys.worker_sessions(lost), session)
if is_ended[record[2]] then return {'refused'} end
redis.call('HSET', keys.session(session), 'worker', new)
redis.call('HINCRBY', keys.session(session), 'epoch', 1)
give(session, new)
-- A worker that leaves in order hands back what it runs; it has not died of it.
local has_left = tonumber(redis.call('ZSCORE', keys.workers, lost) or -1) == 0
local at, released = now(), {}
for _, id in ipairs(redis.call('ZRANGE', keys.session_queue(session), 0, -1)) do
  local operation = redis.call('HMGET', keys.operation(id), 'state', 'kind', 'attempts', 'trace')
  if has_left and operation[1] == 'RUNNING' then redis.call('HINCRBY', keys.operation(id), 'attempts', -1) end
  local exhausted = not has_left and tonumber(operation[3] or 0) >= tonumber(most_attempts)
  redis.call('HDEL', keys.operation(id), 'claim')
  if operation[1] == 'RUNNING' and exhausted and operation[2] ~= 'stop-session' then
    move(id, 'fail')
    local reason = 'its worker died each of the ' .. operation[3] .. ' times that it was run'
    failed(id, session, at, 'INTERNAL_ERROR', reason)
    if operation[2] == 'create-session' then
      end_session(session, 'ERROR', at, reason, 'abandon', 'SESSION_NOT_ACTIVE',
        'the session could not be created: ' .. reason)
      return {'moved', {}}
    end
  elseif operation[1] == 'RUNNING' or operation[1] == 'READY' then
    move(id, 'requeue')
    redis.call('ZADD', keys.due, at, id)
    released[#released + 1] = {id, operation[2], new, operation[4]}
  end
end
return {'moved', release(session, tonumber(most_samples), released)}
