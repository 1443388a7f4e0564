-- finish: apply the outcomes of claims that are still held; answer per outcome 1 if it stands applied, else 0.
-- KEYS[1] base   ARGV[1] msgpack [[id, fence, kind, lane, rank, created, mode, start, keep, attempt's line, result,
--   result is a repr, error, has failed, bucket of the wait (w3), bucket of the run (r0), run time, key's place,
--   schedule, releases], ...]
--   kind: o done, f dead, c cancelled, r retry, l release
--   keep: for how long once it has ended, be it as cancelled instead of again
-- touches  base:time base:state base:running base:held:<replica> base:expires base:dead base:cancelled base:delayed
--   base:lane:<lane> base:lanes base:counts base:totals (hash: 'queue task what' to number, or the last error)
--   base:series:<minute> (hash: 'queue task what' to number)  base:minutes (zset of those)  base:keys base:until
--   base:tick_of base:ticks base:followers base:open:<schedule> base:running_of base:runs (hash: 'schedule what' to
--   number)  base:schedules base:body
-- Bodies are left alone: what is needed of them comes with the claim.
-- uses  clock basics records telling places keys ending
local KEPT_ATTEMPTS = 100
local outcomes = cmsgpack.unpack(ARGV[1])
local ids = {}
for n, outcome in ipairs(outcomes) do ids[n] = outcome[1] end
local states = read_many('HMGET', base .. ':state', ids)

local written, expires, left, applied, totals, series, errors = {}, {}, {}, {}, {}, {}, {}

-- Count a closed attempt. A released one never happened.
local function close(outcome, kind)
  if kind == 'l' then return end
  local lane, schedule, failed = outcome[4], outcome[19], outcome[14]
  add(totals, lane, 'attempts', 1)
  add(series, lane, outcome[15], 1)
  add(series, lane, outcome[16], 1)
  if kind ~= 'r' then add(series, lane, kind, 1) end
  if kind == 'o' then add(totals, lane, 'done', 1) end
  if failed == 1 then
    add(totals, lane, 'failures', 1)
    add(series, lane, 'failed', 1)
  end
  if outcome[13] then errors[lane .. ' error'] = outcome[13] end
  if schedule and redis.call('HEXISTS', base .. ':schedules', schedule) == 1 then
    redis.call('HINCRBY', base .. ':runs', schedule .. ' runs', 1)
    redis.call('HINCRBY', base .. ':runs', schedule .. ' failures', failed)
  end
end

-- At least the newest attempts, once there are twice as many.
local function cut(lines)
  local _, lines_before = string.gsub(lines, '\n', '')
  if lines_before < 2 * KEPT_ATTEMPTS then return lines end
  local first = 1
  for _ = 1, lines_before - KEPT_ATTEMPTS do first = string.find(lines, '\n', first, true) + 1 end
  return string.sub(lines, first)
end

local function finish_ended(outcome, kind, fields, lines)
  local id, lane = outcome[1], outcome[4]
  local till = keep_until(outcome[9])
  local state = { kind, fields[2], fields[3], 0, fields[5], now, till, outcome[11], outcome[12] }
  written[#written + 1] = id
  written[#written + 1] = cmsgpack.pack(state) .. lines
  expires[#expires + 1] = till
  expires[#expires + 1] = id
  ended[#ended + 1] = id
  count(lane, kind, 1)
  if kind ~= 'o' then redis.call('ZADD', base .. (kind == 'f' and ':dead' or ':cancelled'), outcome[6], id) end
  if outcome[18] then free_key(id, outcome[18], 'up') end
  if outcome[19] then leave_schedule(id, outcome[19], NAMES[kind], outcome[17]) end
end

local function finish_waiting(outcome, kind, fields, lines)
  local id, lane = outcome[1], outcome[4]
  local attempt, due = fields[3], due_of(outcome[7], outcome[8])
  if kind == 'l' then
    attempt = attempt - 1
    if outcome[7] == 0 then due = fields[5] end
  end
  written[#written + 1] = id
  written[#written + 1] = cmsgpack.pack({ 'w', fields[2], attempt, outcome[20], due, false }) .. lines
  place(id, lane, outcome[5], due)
  hint_lane(lane)
end

local answers = {}
for n, outcome in ipairs(outcomes) do
  local id, kind, line = outcome[1], outcome[3], outcome[10]
  local fields, lines = nil, applied[id]
  if not lines and states[n] then fields, lines = read_state(states[n]) end
  if not fields or fields[1] ~= 'x' or fields[2] ~= outcome[2] then
    -- The line names its finisher: it tells a repeat from a rival under the same fence.
    answers[n] = lines and string.find(lines, line, 1, true) and 1 or 0
  else
    answers[n] = 1
    if fields[8] and (kind == 'r' or kind == 'l') then kind = 'c' end
    lines = lines .. line
    if #lines > 100 * KEPT_ATTEMPTS then lines = cut(lines) end
    applied[id] = lines
    local gone = left[fields[6]]
    if not gone then
      gone = {}
      left[fields[6]] = gone
    end
    gone[#gone + 1] = id
    count(outcome[4], 'x', -1)
    if outcome[19] then redis.call('HINCRBY', base .. ':running_of', outcome[19], -1) end
    close(outcome, kind)
    if kind == 'r' or kind == 'l' then
      finish_waiting(outcome, kind, fields, lines)
    else
      finish_ended(outcome, kind, fields, lines)
    end
  end
end

write_many('HSET', base .. ':state', written)
write_many('ZADD', base .. ':expires', expires)
for replica, gone in pairs(left) do
  write_many('ZREM', base .. ':running', gone)
  write_many('SREM', base .. ':held:' .. replica, gone)
end
if #ended > 0 and redis.call('EXISTS', base .. ':followers') == 1 then
  for n = 1, #ended do let_go(ended[n]) end
end
local function write_tally(key, tally)
  for lane, of_lane in pairs(tally) do
    for what, number in pairs(of_lane) do redis.call('HINCRBY', key, lane .. ' ' .. what, number) end
  end
end

write_tally(base .. ':totals', totals)
for field, text in pairs(errors) do redis.call('HSET', base .. ':totals', field, text) end
if next(series) then
  local minute = string.format('%.0f', now - now % 60000)
  write_tally(base .. ':series:' .. minute, series)
  redis.call('ZADD', base .. ':minutes', minute, minute)
end
settle()
return answers
