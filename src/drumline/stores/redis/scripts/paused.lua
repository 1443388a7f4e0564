-- paused: what is paused, and by whom; answers names and JSON in turn.
-- KEYS[1] base   ARGV[1] queue or schedule
-- touches  base:paused base:schedules
local base = KEYS[1]
if ARGV[1] == 'queue' then return redis.call('HGETALL', base .. ':paused') end
local found, plans = {}, redis.call('HGETALL', base .. ':schedules')
for n = 1, #plans, 2 do
  local plan = cmsgpack.unpack(plans[n + 1])
  if plan[11] then
    found[#found + 1] = plans[n]
    found[#found + 1] = plan[12]
  end
end
return found
