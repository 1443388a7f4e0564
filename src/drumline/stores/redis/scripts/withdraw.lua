-- withdraw: forget schedules that were registered at run time; answer per name 1 if it was, else 0.
-- KEYS[1] base   ARGV[1] who, by name   ARGV[2] msgpack of an act, as `tell_act` takes it
--   ARGV[3..] the names of schedules
-- touches  base:time base:schedules base:runs base:fleet base:ticks base:ledger base:ledger:<schedule>
--   base:instants:<schedule> base:ledgers base:audit base:audited
-- uses  clock basics records telling places ledger auditing
local answers, fates = {}, {}
for n = 3, #ARGV do
  local name = ARGV[n]
  local text = redis.call('HGET', base .. ':schedules', name)
  local plan = text and cmsgpack.unpack(text)
  local is_withdrawn = plan and not plan[4]
  if is_withdrawn then
    tell_pause(name, plan, plan[2], ARGV[1])
    tell_row_of_change(name, plan, ARGV[1], 'withdrawn', false)
    redis.call('HDEL', base .. ':schedules', name)
    redis.call('HDEL', base .. ':runs', name .. ' runs', name .. ' failures')
  end
  fates[n - 2] = is_withdrawn or false
  answers[n - 2] = is_withdrawn and 1 or 0
end
tell_act(cmsgpack.unpack(ARGV[2]), fates)
settle()
return answers
