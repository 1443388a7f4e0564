-- fire: record each tick at most once, with its job or with the reason there is none.
-- KEYS[1] base   ARGV[1] msgpack [{schedule, mark, replica, instant, decision, reason, overlapped (the
--   reason if overlap skips it), till, count, version, is_tick, makes_job, moves_on, follows_last_tick,
--   epoch (of a fleet's start, else -1), job (as `add_job` takes it)}, ...]
--   ARGV[2] by whom   ARGV[3] msgpack of an act, as `tell_act` takes it
-- touches  base:time base:fleet base:schedules base:ticks base:ledger base:ledger:<schedule>
--   base:instants:<schedule> base:ledgers base:purged (hash: schedule to 'instant epoch')  base:tick_of
--   base:open:<schedule> base:of:<schedule> base:created base:body base:state base:delayed base:lane:<lane> base:lanes
--   base:counts base:keys base:until base:named:<key> base:tag:<tag> base:followers base:expires base:cancelled
--   base:audit base:audited
-- answers per firing  [what came of it, its job]
-- uses  clock basics records telling places keys adding ending ledger auditing
-- Whether the tick may have stood in the ledger before that was purged.
local function is_purged(schedule, instant, epoch)
  local purged = redis.call('HGET', base .. ':purged', schedule)
  if not purged then return false end
  local to, start = string.match(purged, '^(%S+) (%S+)$')
  return instant <= tonumber(to) or (epoch >= 0 and epoch <= tonumber(start))
end

-- The schedule's unfinished jobs that stand in this firing's way: a replica's own tick meets only those of its queue.
local function find_earlier(schedule, replica, lane)
  local queue, found = string.match(lane, '^%S+'), {}
  for _, id in ipairs(redis.call('ZRANGE', base .. ':open:' .. schedule, 0, -1)) do
    local job = find_job(id)
    if replica == '' or job.queue == queue then found[#found + 1] = { id, job } end
  end
  return found
end

-- End what waits, ask what runs to stop; the newest that runs is what the new job waits for.
local function cancel_all(earlier)
  local running = nil
  for _, one in ipairs(earlier) do
    local fields, lines = find_state(one[1], one[2].lane)
    if fields[1] == 'w' then
      cancel_waiting(one[1], one[2], fields, lines)
    else
      ask_to_stop(one[1], fields, lines)
      running = one[1]
    end
  end
  return running
end

local function has_waiting_for(earlier)
  for _, one in ipairs(earlier) do
    local fields = find_state(one[1], one[2].lane)
    if fields[1] == 'w' and fields[6] then return true end
  end
  return false
end

-- The job that runs after all the others: nobody waits for it yet.
local function last_of(earlier)
  local is_waited_for = {}
  for _, one in ipairs(earlier) do
    local fields = find_state(one[1], one[2].lane)
    if fields[1] == 'w' and fields[6] then is_waited_for[fields[6]] = true end
  end
  for n = #earlier, 1, -1 do
    if not is_waited_for[earlier[n][1]] then return earlier[n][1] end
  end
end

-- Make the firing's job as the overlap policy allows; nothing if it does not.
local function fire_job(firing, overlap)
  local job = firing.job
  if redis.call('ZSCORE', base .. ':created', job[1]) then return job[1] end
  local earlier = overlap == 'allow' and {} or find_earlier(firing.schedule, firing.replica, job[2])
  local leader = nil
  if #earlier > 0 then
    if firing.decision == 'backfill' then
      leader = last_of(earlier)
    elseif overlap == 'skip' or (overlap == 'queue_one' and has_waiting_for(earlier)) then
      return nil
    else
      leader = overlap == 'queue_one' and earlier[#earlier][1] or cancel_all(earlier)
    end
  end
  add_job(job, leader)
  return job[1]
end

local function is_decided(plan, firing, standing)
  if standing then return not (firing.decision == 'backfill' and not standing[9]) end
  if firing.follows_last_tick and firing.instant <= plan[7] then return true end
  return is_purged(firing.schedule, firing.instant, firing.epoch)
end

-- Count the instants of this firing as decided.
local function pass_over(plan, firing)
  if firing.moves_on then plan[7] = math.max(plan[7], firing.till or firing.instant) end
end

local function keep(plan, firing)
  redis.call('HSET', base .. ':schedules', firing.schedule, cmsgpack.pack(plan))
end

local function move_on(plan, firing, answer)
  pass_over(plan, firing)
  if firing.decision == 'orphaned' then
    plan[13] = now
    change(plan)
  end
  if answer == 'fired' and firing.decision == 'fired' then plan[8], plan[9], plan[10] = now, firing.mark, ARGV[2] end
  keep(plan, firing)
end

local function record(plan, firing, answer, made)
  local decision, reason = firing.decision, firing.reason
  if decision == 'backfill' then decision = 'fired' end
  if answer == 'overlap' then decision, reason = 'overlap', firing.overlapped end
  tell_ledger({
    firing.schedule, firing.mark, firing.replica, firing.instant, decision, reason, ARGV[2], now, made or false,
    firing.till, firing.count, false, false, false,
  })
end

local function fire(firing)
  local text = redis.call('HGET', base .. ':schedules', firing.schedule)
  if not text then return { 'unknown', false } end
  local plan = cmsgpack.unpack(text)
  if plan[11] and firing.is_tick then return { 'paused', false } end
  if firing.version and firing.version ~= plan[14] then return { 'stale', false } end
  if firing.decision == 'trigger' then
    local made = fire_job(firing, plan[3])
    return { made and 'fired' or 'overlap', made or false }
  end
  if (firing.till or firing.instant) > now then return { 'early', false } end
  local row = redis.call('HGET', base .. ':ticks', tick_name(firing.schedule, firing.replica, firing.mark))
  local standing = row and cmsgpack.unpack(row)
  if is_decided(plan, firing, standing) then
    -- Of many instants only the first is known to be decided.
    if not firing.till then
      pass_over(plan, firing)
      keep(plan, firing)
    end
    return { 'duplicate', standing and standing[9] }
  end
  local answer, made = 'recorded', nil
  if firing.makes_job then
    made = fire_job(firing, plan[3])
    answer = made and 'fired' or 'overlap'
  end
  record(plan, firing, answer, made)
  move_on(plan, firing, answer)
  return { answer, made or false }
end

-- Of each schedule, in the order in which they come: whether a job of it was made. `places` tells which is which.
local answers, fates, places = {}, {}, {}
for n, firing in ipairs(cmsgpack.unpack(ARGV[1])) do
  answers[n] = fire(firing)
  local at = places[firing.schedule] or #fates + 1
  places[firing.schedule] = at
  fates[at] = fates[at] or answers[n][1] == 'fired'
end
tell_act(cmsgpack.unpack(ARGV[3]), fates)
settle()
return answers
