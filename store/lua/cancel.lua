-- operation, session, most samples at once. Cancelling twice is cancelling once.
local id, session, most_samples = unpack(ARGV)
local record = redis.call('HMGET', keys.operation(id), 'session', 'error_code')
if record[1] ~= session then return {'unknown'} end
if record[2] == 'CANCELLED' then return {'cancelled', {}} end
if not move(id, 'abandon') then return {'begun'} end
failed(id, session, now(), 'CANCELLED', 'cancelled before it began')
return {'cancelled', release(session, tonumber(most_samples), {})}
