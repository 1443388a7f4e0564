-- telling: how many jobs there are, and who hears of what was done.
-- touches  base:counts (hash: 'queue task state' to number)  base:time
--   base:bell (zset of one member at most: there may be something to claim; whoever stands by takes it away)
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
  if #names > 0 or is_changed then redis.call('ZADD', base .. ':bell', 0, '1') end
  if #ended > 0 then redis.call('PUBLISH', base .. ':news:ended', table.concat(ended)) end
  if #cancelled > 0 then redis.call('PUBLISH', base .. ':news:cancel', table.concat(cancelled, '\n')) end
  if is_changed then redis.call('PUBLISH', base .. ':news:changes', '') end
end
