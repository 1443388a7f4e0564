-- purge: forget one slice of what has outlived its retention; answer how many.
-- KEYS[1] base   ARGV[1] msgpack [how many at most, ticks kept for, newest ticks kept, audit, series, replicas kept
--   for]
-- touches  base:time base:expires base:body base:state base:notes base:created base:dead base:cancelled base:log:<id>
--   base:logged:<id> base:named:<key> base:of:<schedule> base:tag:<tag> base:counts base:ledgers base:ledger
--   base:ledger:<schedule> base:instants:<schedule> base:ticks base:tick_of base:purged base:audit base:audited
--   base:minutes base:series:<minute> base:replicas base:held:<replica> base:until base:keys base:lanes
--   base:lane:<lane> base:totals
-- uses  clock basics records telling places keys forgetting
local limit, ticks, newest, audit, series, replicas = unpack(cmsgpack.unpack(ARGV[1]))
local room = limit

local function slice(key, till)
  if room <= 0 then return {} end
  local found = redis.call('ZRANGEBYSCORE', key, '-inf', till, 'LIMIT', 0, room)
  room = room - #found
  return found
end

for _, id in ipairs(slice(base .. ':expires', now)) do
  local job = find_job(id)
  forget(id, job, (find_state(id, job.lane)))
end

-- A schedule remembers up to where its ledger was purged, and so protects its ticks from firing twice.
local function purge_tick(schedule, tick)
  local row = cmsgpack.unpack(redis.call('HGET', base .. ':ticks', tick))
  redis.call('HDEL', base .. ':ticks', tick)
  redis.call('ZREM', base .. ':ledger', tick)
  redis.call('ZREM', base .. ':ledger:' .. schedule, tick)
  redis.call('ZREM', base .. ':instants:' .. schedule, tick)
  if row[9] then redis.call('HDEL', base .. ':tick_of', row[9]) end
  local before = redis.call('HGET', base .. ':purged', schedule)
  local to, start = row[4], -1
  if before then
    to, start = string.match(before, '^(%S+) (%S+)$')
    to, start = tonumber(to), tonumber(start)
  end
  local epoch = row[3] == '' and tonumber(string.match(row[2], '^start:(%d+)$')) or -1
  to, start = math.max(to, row[10] or row[4]), math.max(start, epoch)
  redis.call('HSET', base .. ':purged', schedule, string.format('%.0f %.0f', to, start))
end

local function purge_ledger(schedule)
  -- So many of the oldest instants may go; which of them are old enough is told by when they were recorded.
  local spare = redis.call('ZCARD', base .. ':instants:' .. schedule) - newest
  if spare <= 0 then return end
  local key, most = base .. ':ledger:' .. schedule, room + newest
  for _, tick in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', now - ticks, 'LIMIT', 0, most)) do
    if room <= 0 or spare <= 0 then return end
    if redis.call('ZRANK', base .. ':instants:' .. schedule, tick) < spare then
      purge_tick(schedule, tick)
      room, spare = room - 1, spare - 1
    end
  end
end

for _, schedule in ipairs(redis.call('SMEMBERS', base .. ':ledgers')) do
  if room > 0 then purge_ledger(schedule) end
  if redis.call('EXISTS', base .. ':ledger:' .. schedule) == 0 then redis.call('SREM', base .. ':ledgers', schedule) end
end
for _, id in ipairs(slice(base .. ':audited', now - audit)) do
  redis.call('ZREM', base .. ':audited', id)
  redis.call('HDEL', base .. ':audit', id)
end
for _, minute in ipairs(slice(base .. ':minutes', now - series)) do
  redis.call('ZREM', base .. ':minutes', minute)
  redis.call('DEL', base .. ':series:' .. minute)
end
local members = redis.call('HGETALL', base .. ':replicas')
for n = 1, #members, 2 do
  if room > 0 and cmsgpack.unpack(members[n + 1])[2] <= now - replicas then
    redis.call('HDEL', base .. ':replicas', members[n])
    room = room - 1
  end
end
for _, place in ipairs(slice(base .. ':until', now)) do
  redis.call('ZREM', base .. ':until', place)
  redis.call('HDEL', base .. ':keys', place)
end
settle()
-- Lanes of which nothing waits; of most, claims find out by themselves.
for _, lane in ipairs(redis.call('SMEMBERS', base .. ':lanes')) do
  if redis.call('EXISTS', base .. ':lane:' .. lane) == 0 then redis.call('SREM', base .. ':lanes', lane) end
end
-- What private queues have come to of which nothing is left is kept together: each replica has its own.
local in_use = {}
for _, field in ipairs(redis.call('HKEYS', base .. ':counts')) do in_use[string.match(field, '^%S+')] = true end
local totals = redis.call('HGETALL', base .. ':totals')
for n = 1, #totals, 2 do
  local queue, task, what = string.match(totals[n], '^(@%S+) (%S+) (%S+)$')
  if queue and not in_use[queue] then
    local together = '@ ' .. task .. ' ' .. what
    redis.call('HDEL', base .. ':totals', totals[n])
    if what == 'error' then
      redis.call('HSET', base .. ':totals', together, totals[n + 1])
    else
      redis.call('HINCRBY', base .. ':totals', together, totals[n + 1])
    end
  end
end
return limit - room
