-- Says who calls, and takes a token out of their bucket: it holds a second's worth of requests, one at least.
-- `is_static` says whether the settings have this key, `has_static` whether they have any.
local id, digest, is_static, has_static, default_rate = unpack(ARGV)
local record = redis.call('HMGET', keys.api_key(id), 'digest', 'revoked_at')
local owner = id
if is_static == '' and (record[1] ~= digest or record[2]) then
  -- A key that was revoked has been made too: revoking the last one opens nothing.
  if has_static == '1' or redis.call('EXISTS', keys.api_keys) == 1 then return {'unknown'} end
  owner = 'anonymous'
end
local rate = limit_of(owner, 'rate', default_rate)
if rate == math.huge then return {'admitted', owner} end
local bucket, at, most = keys.bucket(owner), now(), math.max(rate, 1)
local level = redis.call('HMGET', bucket, 'tokens', 'at')
local refill = math.max(tonumber(at) - tonumber(level[2] or at), 0) * rate
local tokens = math.min(tonumber(level[1] or most) + refill, most)
if tokens < 1 then return {'limited', tostring(rate), math.ceil((1 - tokens) / rate)} end
redis.call('HSET', bucket, 'tokens', string.format('%.6f', tokens - 1), 'at', at)
redis.call('EXPIRE', bucket, math.ceil(most / rate) + 1)
return {'admitted', owner}
