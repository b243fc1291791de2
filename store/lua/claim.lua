-- operation, worker, claim: begins an operation for the worker that holds its session, once.
-- Asked again with the same claim (its reply was lost) it answers the same.
local id, worker, claim = unpack(ARGV)
local session = redis.call('HGET', keys.operation(id), 'session')
if not session then return false end
if redis.call('HGET', keys.session(session), 'worker') ~= worker then return false end
if move(id, 'claim') then
  redis.call('HSET', keys.operation(id), 'claim', claim, 'started_at', now())
  redis.call('HINCRBY', keys.operation(id), 'attempts', 1)
  redis.call('ZREM', keys.due, id)
elseif redis.call('HGET', keys.operation(id), 'claim') ~= claim then
  count('refused:claim')
  return false
end
local record = redis.call('HMGET', keys.operation(id), 'kind', 'seq', 'request')
local held = redis.call('HMGET', keys.session(session), 'spec', 'epoch')
return {session, record[1], record[2], record[3] or '', held[1], held[2]}
