-- Adds `values` (JSON) to what the user logged under a name, of which a session has at most `most_names`.
local session, name, step, values, idempotency_key, digest, most_names, most_points = unpack(ARGV)
if redis.call('EXISTS', keys.session(session)) == 0 then return {'unknown'} end
-- The answer is what was asked, so whoever repeats a request gets the same without a look at the first one.
local first = known(idempotency_key, digest)
if first then return first end
local names = keys.logged_names(session)
if redis.call('SISMEMBER', names, name) == 0 then
  if redis.call('SCARD', names) >= tonumber(most_names) then return {'full'} end
  redis.call('SADD', names, name)
end
redis.call('XADD', keys.logged(session), 'MAXLEN', '~', most_points, '*', 'step', step, 'values', values)
remember(idempotency_key, digest, session, session)
return {'logged'}
