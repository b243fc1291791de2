-- session, worker, reason: its worker is gone, and the adapter with it
local session, worker, reason = unpack(ARGV)
local record = redis.call('HMGET', keys.session(session), 'worker', 'status')
if record[1] ~= worker then return 0 end
local stopping = record[2] == 'STOPPING'
if not stopping and record[2] ~= 'CREATING' and record[2] ~= 'RUNNING' then return 0 end
local at = now()
end_session(session, stopping and 'STOPPED' or 'ERROR', at, stopping and '' or reason,
  'orphan', 'INTERNAL_ERROR', reason)
return 1
