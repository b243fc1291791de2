-- Begins an operation for the worker that holds its session, once. Asked again with the same claim (its reply was lost) it
-- answers the same. After `suspect_from` attempts it is a suspect, and not begun ('' for a worker that runs it alone).
local id, worker, claim, suspect_from = unpack(ARGV)
local session = redis.call('HGET', keys.operation(id), 'session')
if not session then return false end
if redis.call('HGET', keys.session(session), 'worker') ~= worker then return false end
if suspect_from ~= '' then
  local record = redis.call('HMGET', keys.operation(id), 'state', 'attempts')
  if record[1] == 'READY' and tonumber(record[2] or 0) >= tonumber(suspect_from) then return 'suspect' end
end
if move(id, 'claim') then
  redis.call('HSET', keys.operation(id), 'claim', claim, 'started_at', now())
  redis.call('HINCRBY', keys.operation(id), 'attempts', 1)
  redis.call('ZREM', keys.due, id)
elseif redis.call('HGET', keys.operation(id), 'claim') ~= claim then
  count('refused:claim')
  return false
end
local record = redis.call('HMGET', keys.operation(id), 'kind', 'seq', 'request', 'timeout')
local held = redis.call('HMGET', keys.session(session), 'spec', 'epoch', 'last_change')
return {session, record[1], record[2], record[3] or '', held[1], held[2], held[3] or '', record[4] or ''}
