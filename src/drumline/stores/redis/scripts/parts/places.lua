-- places: where waiting jobs stand.
-- touches  base:lane:<queue task> (zset of ready jobs)  base:lanes (set of lanes that may hold some)
--   base:delayed (zset by due time)  base:body  base:time

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
