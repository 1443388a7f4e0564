-- places: where waiting jobs stand, how many jobs there are, and who hears of it.
-- touches  base:lane:<queue task> (zset of ready jobs)  base:lanes (set of lanes that may hold some)
--   base:delayed (zset by due time)  base:counts (hash: 'queue task state' to number)  base:body  base:time
--   publishes on base:news:queue base:news:ended base:news:cancel base:news:changes

local counted, heard, ended, cancelled = {}, {}, {}, {}
local is_changed, is_placed = false, false

-- Add to the number of something in a lane; told by lane first, for there are few lanes and many jobs.
local function add(tally, lane, what, number)
  local of_lane = tally[lane]
  if not of_lane then
    of_lane = {}
    tally[lane] = of_lane
  end
  of_lane[what] = (of_lane[what] or 0) + number
end

local function count(lane, state, change)
  add(counted, lane, state, change)
end

local function hint_lane(lane)
  heard[lane] = true
end

-- Put a job where claims find it: into its lane if it is due, else among the delayed.
local function place(id, lane, rank, due)
  if due > now then
    redis.call('ZADD', base .. ':delayed', due, id)
    count(lane, 'd', 1)
    return
  end
  redis.call('ZADD', base .. ':lane:' .. lane, rank * RANK + due, id)
  redis.call('SADD', base .. ':lanes', lane)
  count(lane, 'r', 1)
  is_placed = true
end

-- Take a waiting job out of its place.
local function displace(id, lane, fields)
  if fields[6] or redis.call('ZREM', base .. ':delayed', id) == 1 then
    count(lane, 'd', -1)
  else
    redis.call('ZREM', base .. ':lane:' .. lane, id)
    count(lane, 'r', -1)
  end
end

-- Make the due jobs ready, up to so many; say whether that was all.
local function promote(most)
  local due = redis.call('ZRANGEBYSCORE', base .. ':delayed', '-inf', now, 'WITHSCORES', 'LIMIT', 0, most)
  if #due == 0 then return true end
  local ids = {}
  for n = 1, #due, 2 do ids[#ids + 1] = due[n] end
  write_many('ZREM', base .. ':delayed', ids)
  for n, body in ipairs(read_many('HMGET', base .. ':body', ids)) do
    local job = read_body(body)
    count(job.lane, 'd', -1)
    place(ids[n], job.lane, job.rank, tonumber(due[n * 2]))
  end
  return #ids < most
end

-- After the clock has gone back: let wait again what is not yet due.
local function follow_clock()
  local latest = tonumber(times[2])
  if not latest or now >= latest then return end
  for _, lane in ipairs(redis.call('SMEMBERS', base .. ':lanes')) do
    local key = base .. ':lane:' .. lane
    for rank = -100, 100 do
      local first, last = string.format('%.0f', rank * RANK + now + 1), string.format('%.0f', rank * RANK + latest)
      local early = redis.call('ZRANGEBYSCORE', key, first, last, 'WITHSCORES')
      for n = 1, #early, 2 do
        redis.call('ZREM', key, early[n])
        redis.call('ZADD', base .. ':delayed', tonumber(early[n + 1]) % RANK, early[n])
        count(lane, 'r', -1)
        count(lane, 'd', 1)
      end
    end
  end
  redis.call('HSET', base .. ':time', 'latest', string.format('%.0f', now))
  times[2] = now
end

-- Write down what the step leaves: counts, and hints.
local function settle()
  for lane, of_lane in pairs(counted) do
    for state, change in pairs(of_lane) do
      local field = lane .. ' ' .. state
      if change ~= 0 and redis.call('HINCRBY', base .. ':counts', field, change) == 0 then
        redis.call('HDEL', base .. ':counts', field)
      end
    end
  end
  if is_placed and now > (tonumber(times[2]) or 0) then
    redis.call('HSET', base .. ':time', 'latest', string.format('%.0f', now))
  end
  local names = {}
  for lane in pairs(heard) do names[#names + 1] = string.match(lane, '^%S+') end
  if #names > 0 then redis.call('PUBLISH', base .. ':news:queue', table.concat(names, '\n')) end
  if #ended > 0 then redis.call('PUBLISH', base .. ':news:ended', table.concat(ended)) end
  if #cancelled > 0 then redis.call('PUBLISH', base .. ':news:cancel', table.concat(cancelled, '\n')) end
  if is_changed then redis.call('PUBLISH', base .. ':news:changes', '') end
end
