-- declare: hold these schedules; answer per schedule 1 if it is new or changed, else 0.
-- KEYS[1] base   ARGV[1] msgpack [[name, spec, rule, overlap, is in code, is paused], ...]   ARGV[2] who, as JSON
--   ARGV[3] who, by name   ARGV[4] msgpack of an act, as `tell_act` takes it
-- touches  base:time base:schedules (hash: name to msgpack spec, rule, overlap, is in code, was paused at first,
--   declared, last tick, last fired, last mark, leader, paused at, paused by, orphaned at, version, begun)  base:ticks
--   base:ledger base:ledger:<schedule> base:instants:<schedule> base:ledgers base:fleet base:counts base:audit base:audited
-- uses  clock basics records telling places ledger auditing
local function start_from_now(name, plan, reason)
  plan[7], plan[13], plan[15] = now, false, now
  tell_row_of_change(name, plan, ARGV[3], reason, plan[2])
end

local function declare(name, spec, rule, overlap, in_code, is_paused)
  local text = redis.call('HGET', base .. ':schedules', name)
  local plan = text and cmsgpack.unpack(text)
  local is_new = true
  if not plan then
    local at, by = is_paused and now, is_paused and ARGV[2]
    plan = { spec, rule, overlap, in_code, is_paused, now, now, false, false, false, at, by, false, 0, now }
    start_from_now(name, plan, 'declared')
  elseif plan[4] and not in_code then
    return 0
  else
    local had_rule, had_spec = plan[2], plan[1]
    plan[1], plan[2], plan[3], plan[4] = spec, rule, overlap, in_code
    if had_rule ~= rule then
      tell_pause(name, plan, had_rule, ARGV[3])
      start_from_now(name, plan, 'rule changed')
    elseif plan[13] then
      tell_pause(name, plan, had_rule, ARGV[3])
      start_from_now(name, plan, 'no longer orphaned')
    elseif had_spec == spec then
      is_new = false
    else
      change(plan)
    end
  end
  redis.call('HSET', base .. ':schedules', name, cmsgpack.pack(plan))
  return is_new and 1 or 0
end

local answers, fates = {}, {}
for n, schedule in ipairs(cmsgpack.unpack(ARGV[1])) do
  answers[n] = declare(unpack(schedule))
  fates[n] = answers[n] == 1
end
tell_act(cmsgpack.unpack(ARGV[4]), fates)
settle()
return answers
