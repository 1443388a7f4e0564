-- auditing: the row of an action, and with it the answers, for whoever repeats it.
-- touches  base:audit (hash: id to msgpack at, answers, row)  base:audited (zset by when)

local function find_answers(id)
  local text = redis.call('HGET', base .. ':audit', id)
  return text and cmsgpack.unpack(text)[2]
end

local function tell_audit(id, answers, row)
  redis.call('HSET', base .. ':audit', id, cmsgpack.pack({ now, answers, row }))
  redis.call('ZADD', base .. ':audited', now, id)
end

-- The row of an act, [id, row], unless it stands already; `fates` tells of each target whether something was done.
local function tell_act(act, fates)
  if not act or #fates == 0 or find_answers(act[1]) then return end
  local answers = {}
  for n, is_done in ipairs(fates) do answers[n] = is_done and 'applied' or 'refused' end
  tell_audit(act[1], answers, act[2])
end
