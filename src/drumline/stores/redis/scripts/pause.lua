-- pause: pause or resume queues or schedules; answer per name what came of it.
-- KEYS[1] base   ARGV[1] msgpack [token, kind, pause, by as JSON, who, audit row, [name, ...]]
-- touches  base:time base:audit base:audited base:paused (hash: queue to by whom)  base:schedules base:ticks
--   base:ledger base:ledger:<schedule> base:instants:<schedule> base:ledgers base:fleet base:counts
-- uses  clock basics records telling places ledger auditing
local token, kind, is_pause, by, who, row, names = unpack(cmsgpack.unpack(ARGV[1]))
local answers = find_answers(token)
if answers then return answers end

local function pause_queue(name)
  local is_paused = redis.call('HEXISTS', base .. ':paused', name) == 1
  if is_paused == is_pause then return 'refused' end
  if is_pause then
    redis.call('HSET', base .. ':paused', name, by)
  else
    redis.call('HDEL', base .. ':paused', name)
    hint_lane(name)
  end
  return 'applied'
end

local function pause_schedule(name)
  local text = redis.call('HGET', base .. ':schedules', name)
  if not text then return 'not found' end
  local plan = cmsgpack.unpack(text)
  if (plan[11] and true or false) == is_pause then return 'refused' end
  if is_pause then
    plan[11], plan[12] = now, by
  else
    tell_pause(name, plan, plan[2], who)
    plan[7], plan[11], plan[12], plan[15] = now, false, false, now
  end
  change(plan)
  redis.call('HSET', base .. ':schedules', name, cmsgpack.pack(plan))
  return 'applied'
end

answers = {}
local step = kind == 'queue' and pause_queue or pause_schedule
local is_applied = false
for n, name in ipairs(names) do
  answers[n] = step(name)
  is_applied = is_applied or answers[n] == 'applied'
end
tell_audit(token, answers, row)
if is_applied and kind == 'queue' then change() end
settle()
return answers
