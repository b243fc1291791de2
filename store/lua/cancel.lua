-- Ends an operation that has not begun. Cancelling twice is cancelling once.
local id, session, most_samples = unpack(ARGV)
if redis.call('HGET', keys.operation(id), 'error_code') == 'CANCELLED' then return {'cancelled', {}} end
if not move(id, 'abandon') then return {'begun'} end
failed(id, session, now(), 'CANCELLED', 'cancelled before it began')
return {'cancelled', release(session, tonumber(most_samples), {})}
