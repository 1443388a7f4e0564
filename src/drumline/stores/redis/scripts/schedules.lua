-- schedules: the schedules of these names, or all; and the replicas, whose word decides which are orphaned.
-- KEYS[1] base   ARGV the names; all if none
-- touches  base:time base:schedules base:runs base:running_of base:replicas
-- answers  [now, [[name, spec, was paused at first, declared, last tick, last fired, last mark, leader, paused at,
--   paused by, orphaned at, version, begun, running, runs, failures], ...], [[seen, beats every, info], ...]]
-- uses  clock
local names = #ARGV > 0 and ARGV or redis.call('HKEYS', base .. ':schedules')
local rows, members = {}, {}
for _, name in ipairs(names) do
  local text = redis.call('HGET', base .. ':schedules', name)
  if text then
    local plan = cmsgpack.unpack(text)
    local runs = redis.call('HMGET', base .. ':runs', name .. ' runs', name .. ' failures')
    local running = redis.call('HGET', base .. ':running_of', name)
    rows[#rows + 1] = {
      name, plan[1], plan[5], plan[6], plan[7], plan[8], plan[9], plan[10], plan[11], plan[12], plan[13], plan[14],
      plan[15],
      tonumber(running) or 0, tonumber(runs[1]) or 0, tonumber(runs[2]) or 0,
    }
  end
end
for _, text in ipairs(redis.call('HVALS', base .. ':replicas')) do
  local member = cmsgpack.unpack(text)
  members[#members + 1] = { member[2], member[3], member[5] }
end
return { now, rows, members }
