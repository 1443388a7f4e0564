-- ending: what follows from the end of a job, and how a waiting one ends.
-- touches  base:keys base:until base:tick_of (hash: id to tick)  base:ticks (hash: tick to ledger row) base:followers
--   base:open:<schedule> base:expires (zset of ended jobs)  base:dead base:cancelled (zsets by creation)  base:state

local SHORTEST_KEEP = 60000

local function keep_until(keep)
  return now + math.max(keep, SHORTEST_KEEP)
end

local function tell_tick(id, outcome, run_time)
  local tick = redis.call('HGET', base .. ':tick_of', id)
  if not tick then return end
  local row = cmsgpack.unpack(redis.call('HGET', base .. ':ticks', tick))
  row[12], row[13] = outcome, run_time
  redis.call('HSET', base .. ':ticks', tick, cmsgpack.pack(row))
end

-- Let go the jobs that waited for this one.
local function let_go(id)
  local followers = redis.call('HGET', base .. ':followers', id)
  if not followers then return end
  redis.call('HDEL', base .. ':followers', id)
  for first = 1, #followers, 16 do
    local follower = string.sub(followers, first, first + 15)
    local text = redis.call('HGET', base .. ':state', follower)
    local fields, lines = nil, nil
    if text then fields, lines = read_state(text) end
    if fields and fields[1] == 'w' and fields[6] == id then
      local job = find_job(follower)
      fields[6] = false
      write_state(follower, fields, lines)
      count(job.lane, 'd', -1)
      place(follower, job.lane, job.rank, fields[5])
      hint_lane(job.lane)
    end
  end
end

local function leave_schedule(id, schedule, outcome, run_time)
  redis.call('ZREM', base .. ':open:' .. schedule, id)
  tell_tick(id, outcome, run_time)
end

-- End a waiting job as cancelled.
local function cancel_waiting(id, job, fields, lines)
  displace(id, job.lane, fields)
  local till = keep_until(job.keep.c)
  write_state(id, { 'c', fields[2], fields[3], fields[4], fields[5], now, till, false, false }, lines)
  redis.call('ZADD', base .. ':expires', till, id)
  redis.call('ZADD', base .. ':cancelled', job.created, id)
  count(job.lane, 'c', 1)
  if job.key then free_key(id, job.task .. '\n' .. job.key, 'up') end
  if job.schedule then leave_schedule(id, job.schedule, 'cancelled', false) end
  let_go(id)
  ended[#ended + 1] = id
end

-- Ask for a running job to be stopped.
local function ask_to_stop(id, fields, lines)
  fields[8] = true
  write_state(id, fields, lines)
  cancelled[#cancelled + 1] = fields[6]
end
