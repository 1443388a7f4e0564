-- jobs: walk along an index of jobs, newest first, and pick what fits.
-- KEYS[1] base   ARGV[1] msgpack [index, place as [created, id or ''], created from, how many to pass, filter]
-- touches  base:<index> (created, dead, cancelled, tag:<tag>, of:<schedule>, named:<key>; or running,
--   unfinished)  base:time base:body base:state base:notes base:running base:delayed base:lane:<lane> base:lanes
--   base:followers base:created
-- answers  [now, jobs, whether there is more, created and id of the last one passed]
-- uses  clock basics records showing
local index, place, from, stride, where = unpack(cmsgpack.unpack(ARGV[1]))
local key = base .. ':' .. index
-- So many waiting jobs are sorted at each look; among more, those by creation are likely to be theirs.
local FEW = 2000

-- The ids of unfinished jobs, or of the running ones: a few, which do not stand by creation.
local function gather()
  local ids = redis.call('ZRANGE', base .. ':running', 0, -1)
  if index == 'running' then return ids end

  local function add_all(more)
    for n = 1, #more do ids[#ids + 1] = more[n] end
  end

  add_all(redis.call('ZRANGE', base .. ':delayed', 0, -1))
  for _, lane in ipairs(redis.call('SMEMBERS', base .. ':lanes')) do
    add_all(redis.call('ZRANGE', base .. ':lane:' .. lane, 0, -1))
  end
  for _, followers in ipairs(redis.call('HVALS', base .. ':followers')) do
    for first = 1, #followers, 16 do ids[#ids + 1] = string.sub(followers, first, first + 15) end
  end
  return ids
end

local function sort(ids)
  local rows, seen = {}, {}
  local created = read_many('ZMSCORE', base .. ':created', ids)
  for n, id in ipairs(ids) do
    local at = tonumber(created[n])
    local is_behind = at and (at < place[1] or (at == place[1] and id < place[2]))
    -- A follower that was moved or has ended since may still be named by its leader.
    if is_behind and not seen[id] then rows[#rows + 1] = { at, id } end
    seen[id] = true
  end
  table.sort(rows, function(one, other)
    return one[1] > other[1] or (one[1] == other[1] and one[2] > other[2])
  end)
  local found = {}
  for n = 1, math.min(stride, #rows) do
    found[#found + 1] = rows[n][2]
    found[#found + 1] = rows[n][1]
  end
  return found
end

local function count_waiting()
  local number = redis.call('ZCARD', base .. ':delayed')
  for _, lane in ipairs(redis.call('SMEMBERS', base .. ':lanes')) do
    number = number + redis.call('ZCARD', base .. ':lane:' .. lane)
  end
  return number
end

-- How many stand before the place.
local function find_rank()
  local created, id = place[1], place[2]
  if id == '' then return redis.call('ZCOUNT', key, created, '+inf') end
  if tonumber(redis.call('ZSCORE', key, id)) == created then return redis.call('ZREVRANK', key, id) + 1 end
  -- The job of the place is gone: what would stand there now?
  redis.call('ZADD', key, created, id .. '-')
  local rank = redis.call('ZREVRANK', key, id .. '-')
  redis.call('ZREM', key, id .. '-')
  return rank
end

if index == 'unfinished' and count_waiting() > FEW then
  key = base .. ':created'
  index = 'created'
end
local passed
if index == 'running' or index == 'unfinished' then
  passed = sort(gather())
else
  local rank = find_rank()
  passed = redis.call('ZREVRANGE', key, rank, rank + stride - 1, 'WITHSCORES')
end
local ids, last, is_over = {}, { place[1], place[2] }, #passed < stride * 2
for n = 1, #passed, 2 do
  local created = tonumber(passed[n + 1])
  if created < from then
    is_over = true
    break
  end
  ids[#ids + 1] = passed[n]
  last = { created, passed[n] }
end
return { now, show_jobs(ids, where), not is_over, last[1], last[2] }
