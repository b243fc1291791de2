-- Ends an operation for the worker that claimed it: state, result, what it means for the session and the release of its
-- successors change together or not at all.
-- `ending` is 'complete' or 'fail'. `step` and `published` are the session's after an optim-step and a weights-sync.
-- `replay` is '1' for what changed the adapter. `checkpoint` is the record of the one that was made. `values` (JSON) go to
-- the session's series of at most `most_points`. `requests_kept` newest requests of the session are kept to be shown, this
-- one among them. '' stands for none of each.
local id, claim, ending, result, code, message, step, published, replay, most_samples, checkpoint, checkpoint_kind, folder,
  sampled, trained, values, most_points, requests_kept = unpack(ARGV)

local function refused()
  count('refused:finish')
  return {'refused'}
end

-- Points are told apart by the totals of their time, from which rates follow. A forward-backward's are those of the
-- step that its gradient is for.
local function plot(session, kind)
  local key = keys.session(session)
  for name, tokens in pairs({sampled = sampled, trained = trained}) do
    if tokens ~= '0' then
      redis.call('HINCRBY', key, name, tokens)
      redis.call('HINCRBY', keys.counters, 'tokens:' .. name, tokens)
    end
  end
  if values == '' or most_points == '0' then return end
  local totals = redis.call('HMGET', key, 'step', 'sampled', 'trained')
  local step_of = kind == 'optim-step' and totals[1] or totals[1] + 1
  redis.call('XADD', keys.series(session), 'MAXLEN', '~', most_points, '*', 'step', step_of,
    'sampled', totals[2] or 0, 'trained', totals[3] or 0, 'values', values)
end

-- The newest requests are kept to be looked at.
local function keep_request(session, at)
  if requests_kept == '' then return end
  redis.call('ZADD', keys.requests(session), at, id)
  local surplus = redis.call('ZRANGE', keys.requests(session), 0, -(tonumber(requests_kept) + 1))
  for _, old in ipairs(surplus) do
    redis.call('ZREM', keys.requests(session), old)
    drop_if_unneeded(session, old)
  end
end

local record = redis.call('HMGET', keys.operation(id), 'claim', 'session', 'kind')
if record[1] ~= claim then return refused() end
local session, kind = record[2], record[3]
if not move(id, ending) then
  -- Ended already: by this very claim when its reply was lost, else by whoever took it away.
  local ours = redis.call('HGET', keys.operation(id), 'finished_by') == claim
  return ours and {'finished', {}} or refused()
end
redis.call('HSET', keys.operation(id), 'finished_by', claim)
local at = now()
redis.call('HSET', keys.session(session), 'updated_at', at)
-- What changed the adapter is kept until a snapshot covers it.
if replay == '1' then
  redis.call('ZADD', keys.replay(session), redis.call('HGET', keys.operation(id), 'seq'), id)
  redis.call('HSET', keys.session(session), 'last_change', claim)
end
keep_request(session, at)
drop_if_unneeded(session, id)
if ending == 'complete' then
  if result ~= '' then
    redis.call('HSET', keys.operation(id), 'result', result)
    refer_to(result)
  end
  if step ~= '' then redis.call('HSET', keys.session(session), 'step', step) end
  plot(session, kind)
  if published ~= '' then redis.call('HSET', keys.session(session), 'published', published) end
  if checkpoint ~= '' then
    local owner = redis.call('HGET', keys.session(session), 'owner')
    redis.call('HSET', keys.checkpoint(id), 'record', checkpoint, 'owner', owner, 'session', session,
      'kind', checkpoint_kind, 'created_at', at, 'folder', folder)
    for _, scope in ipairs(checkpoint_scopes(owner, session, checkpoint_kind)) do
      redis.call('ZADD', keys.checkpoints(scope), at, id)
    end
    redis.call('ZREM', keys.saves, folder)
  end
else
  redis.call('HSET', keys.operation(id), 'error_code', code, 'error_message', message)
end
ended(id, session, at)
if kind == 'stop-session' then
  local final = redis.call('HGET', keys.session(session), 'final')
  end_session(session, final, at, '', 'abandon', 'SESSION_NOT_ACTIVE', 'the session was stopped')
elseif kind == 'create-session' and ending == 'fail' then
  end_session(session, 'ERROR', at, message, 'abandon', code, 'the session could not be created: ' .. message)
elseif kind == 'create-session' and redis.call('HGET', keys.session(session), 'status') == 'CREATING' then
  set_status(session, 'RUNNING', at, '')
end
return {'finished', release(session, tonumber(most_samples), {})}
