-- Makes model resources, which expire after `timeout` seconds without use.
local id, spec, owner, timeout, idempotency_key, digest = unpack(ARGV)
-- The client library sends a script again when a connection broke before the reply.
if redis.call('EXISTS', keys.resources(id)) == 1 then return {'created'} end
local first = known(idempotency_key, digest)
if first then return first end
local at = now()
redis.call('HSET', keys.resources(id), 'spec', spec, 'status', 'READY', 'timeout', timeout, 'created_at', at, 'updated_at', at)
redis.call('ZADD', keys.resources_with('READY'), at, id)
redis.call('ZADD', keys.owner_resources(owner), at, id)
remember(idempotency_key, digest, id)
return {'created'}
