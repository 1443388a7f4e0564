-- reseal: write arguments in another form where they stand as they were read; answer 1 where they do now, else 0.
-- KEYS[1] base   ARGV[1] msgpack [[id or false, schedule or false, before, after], ...]; before and after are the
--   beginning of what a replacement replaces, for a job, and of the spec, for a schedule
-- touches  base:time base:body base:schedules base:fleet
-- uses  clock basics records telling places ledger
local function swap(text, first, before, after)
  if string.sub(text, first, first + #after - 1) == after then return text end
  if string.sub(text, first, first + #before - 1) ~= before then return nil end
  return string.sub(text, 1, first - 1) .. after .. string.sub(text, first + #before)
end

local function reseal_job(id, before, after)
  local body = redis.call('HGET', base .. ':body', id)
  if not body then return 0 end
  local head, part = struct.unpack('>I3I4', body, 16)
  local text = swap(body, 23 + head, before, after)
  if not text then return 0 end
  local size = struct.pack('>I4', part + #text - #body)
  redis.call('HSET', base .. ':body', id, string.sub(text, 1, 18) .. size .. string.sub(text, 23))
  return 1
end

local function reseal_schedule(name, before, after)
  local text = redis.call('HGET', base .. ':schedules', name)
  local plan = text and cmsgpack.unpack(text)
  local spec = plan and swap(plan[1], 1, before, after)
  if not spec then return 0 end
  if spec ~= plan[1] then
    plan[1] = spec
    change(plan)
    redis.call('HSET', base .. ':schedules', name, cmsgpack.pack(plan))
  end
  return 1
end

local answers = {}
for n, one in ipairs(cmsgpack.unpack(ARGV[1])) do
  local id, name, before, after = unpack(one)
  answers[n] = id and reseal_job(id, before, after) or name and reseal_schedule(name, before, after) or 0
end
settle()
return answers
