-- counts: jobs by queue, task and state, and what they have come to.
-- KEYS[1] base
-- touches  base:time base:delayed base:body base:lane:<lane> base:lanes base:counts base:totals
-- answers  [fields and numbers in turn, fields and numbers or errors in turn, lanes and since when in turn]
-- uses  clock basics records telling places
-- Since when the oldest ready job of a lane is due: one look for each priority in use.
local function find_oldest(lane)
  local oldest, from = nil, '-inf'
  while true do
    local first = redis.call('ZRANGEBYSCORE', base .. ':lane:' .. lane, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if #first == 0 then return oldest end
    local score = tonumber(first[2])
    local rank = math.floor(score / RANK)
    local due = score - rank * RANK
    if not oldest or due < oldest then oldest = due end
    from = string.format('%.0f', (rank + 1) * RANK)
  end
end

follow_clock()
while not promote(SHARE) do end
settle()
local since = {}
for _, lane in ipairs(redis.call('SMEMBERS', base .. ':lanes')) do
  local oldest = find_oldest(lane)
  if oldest then
    since[#since + 1] = lane
    since[#since + 1] = string.format('%.0f', oldest)
  end
end
return { redis.call('HGETALL', base .. ':counts'), redis.call('HGETALL', base .. ':totals'), since }
