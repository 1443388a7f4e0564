-- clock: the fleet's one clock, in whole milliseconds.
-- touches  base:time (hash; `latest`: when a job was last made ready; `set`: a clock that only tests write)

local base = KEYS[1]
local times = redis.call('HMGET', base .. ':time', 'set', 'latest')
local now = tonumber(times[1])
if not now then
  local moment = redis.call('TIME')
  now = moment[1] * 1000 + math.floor(moment[2] / 1000)
end

-- When a job with this start becomes due. The mode is 0 at once, 1 after so long, 2 at an instant; the past is now.
local function due_of(mode, start)
  if mode == 0 then return now end
  if mode == 1 then start = now + start end
  return math.max(start, now)
end
