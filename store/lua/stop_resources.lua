-- Model resources take no new sessions from now on. `mode` is '' to stop them only when none of their sessions is active,
-- 'force', or 'expire' to stop them only when nothing has used them for their timeout. Answers with the active sessions,
-- which are then to be stopped one by one.
local id, mode, idempotency_key, digest = unpack(ARGV)
local first = known(idempotency_key, digest)
if first then return first end
local record = redis.call('HMGET', keys.resources(id), 'status', 'created_at', 'timeout', 'kept_until', 'used_at')
if not record[1] then return {'unknown'} end
if record[1] ~= 'READY' then return {'over'} end
local active, busy, used = {}, false, tonumber(record[5] or record[2])
for _, session in ipairs(redis.call('SMEMBERS', keys.resources_sessions(id))) do
  used = math.max(used, tonumber(redis.call('HGET', keys.session(session), 'updated_at')))
  active[#active + 1] = session
  if redis.call('ZCARD', keys.session_queue(session)) > 0 then busy = true end
end
local at = now()
local expires_at = math.max(used + tonumber(record[3]), tonumber(record[4] or 0))
if mode == 'expire' and (busy or expires_at > tonumber(at)) then return {'used'} end
if mode == '' and #active > 0 then return {'active', #active} end
redis.call('HSET', keys.resources(id), 'status', 'STOPPED', 'updated_at', at,
  'final', mode == 'expire' and 'EXPIRED' or 'STOPPED')
redis.call('ZREM', keys.resources_with('READY'), id)
redis.call('ZADD', keys.resources_with('STOPPED'), at, id)
remember(idempotency_key, digest, id)
return {'stopped', active}
