-- operation, session, most samples at once
local id, session, most_samples = unpack(ARGV)
local record = redis.call('HMGET', keys.operation(id), 'session')
if record[1] ~= session then return {'unknown'} end
if not move(id, 'abandon') then return {'begun'} end
failed(id, session, now(), 'CANCELLED', 'cancelled before it began')
return {'cancelled', release(session, tonumber(most_samples), {})}
