-- claim: take the first due jobs of the named tasks, queue by queue, each giving at most its share.
-- KEYS[1] base   ARGV[1] msgpack [replica, token, limit, [[queue, its limit, [left out, ...]], ...], [task, ...],
--   stood by]; one that stood by gives nothing to a replica whose beat is overdue: it may be frozen
--   with a limit of 0, the token is used up: a call with it that stands by takes nothing any more, and is let go
-- touches  base:time base:token:<token> (the claims it gave, for a minute)  base:delayed base:body base:state
--   base:lane:<lane> base:lanes base:paused base:running (zset by lease end)  base:held:<replica> (set of ids)
--   base:counts base:keys base:until base:running_of (hash: schedule to how many of its jobs run)
--   base:alive:<replica>  base:bell:<token> (zset; what a call that stands by waits for, besides base:bell)
-- answers  [now, next due, claims as of `show_claims`] for a token that was used,
--   else [now, next due, nothing, ids, fences, attempts, releases, dues, bodies]
-- uses  clock basics telling
local replica, token, limit, shares, tasks, stood_by = unpack(cmsgpack.unpack(ARGV[1]))
local TOKEN_LIFE = 60000
local PROMOTED_AT_ONCE = 10000
local token_key = base .. ':token:' .. token

-- What is seldom needed is made when it is: to make functions takes a server as long as commands do.
local rare
local function rarely()
  if rare then return rare end
  -- uses  records places keys claims
  rare = {
    show_claims = show_claims, follow_clock = follow_clock, promote = promote, read_state = read_state,
    read_body = read_body, free_key = free_key,
  }
  return rare
end

local function find_next_due()
  local first = redis.call('ZRANGE', base .. ':delayed', 0, 0, 'WITHSCORES')
  return first[2] and tonumber(first[2]) or false
end

-- A token's text: the fence that nearly all have, their number, all ids; then ids and fences in turn of the others.
local function read_token(text)
  local common, number = struct.unpack('>I8I4', text)
  local ids, fences, first = {}, {}, 13
  for n = 1, number do
    ids[n] = string.sub(text, first, first + 15)
    fences[ids[n]] = common
    first = first + 16
  end
  for other = first, #text, 24 do
    fences[string.sub(text, other, other + 15)] = struct.unpack('>I8', text, other + 16)
  end
  return ids, fences
end

local given = redis.call('GET', token_key)
if given then
  local ids, fences = read_token(given)
  local held = {}
  for _, claim in ipairs(rarely().show_claims(ids)) do
    if fences[claim[1]] == claim[2] then held[#held + 1] = claim end
  end
  return { now, find_next_due(), held }
end

if limit == 0 then
  redis.call('SET', token_key, struct.pack('>I8I4', 0, 0), 'PX', TOKEN_LIFE)
  redis.call('ZADD', base .. ':bell:' .. token, 0, '1')
  redis.call('PEXPIRE', base .. ':bell:' .. token, TOKEN_LIFE)
  return { now, find_next_due(), {} }
end

if stood_by and redis.call('EXISTS', base .. ':alive:' .. replica) == 0 then
  return { now, find_next_due(), {} }
end

if now < (tonumber(times[2]) or 0) then rarely().follow_clock() end
local next_due = find_next_due()
if next_due and next_due <= now then
  local are_all = rarely().promote(PROMOTED_AT_ONCE)
  if are_all then next_due = find_next_due() else next_due = now end
end

local known, paused = {}, {}
for _, task in ipairs(tasks) do known[task] = true end
for _, queue in ipairs(redis.call('HKEYS', base .. ':paused')) do paused[queue] = true end
local open = {}
for _, lane in ipairs(redis.call('SMEMBERS', base .. ':lanes')) do
  local queue, task = string.match(lane, '^(%S+) (%S+)$')
  if known[task] and not paused[queue] then
    open[#open + 1] = { queue = queue, lane = lane, key = base .. ':lane:' .. lane }
  end
end

local ids, dues = {}, {}

local function look(lane)
  local head = redis.call('ZRANGE', lane.key, 0, 0, 'WITHSCORES')
  if not head[1] then
    redis.call('SREM', base .. ':lanes', lane.lane)
    return false
  end
  lane.id, lane.score = head[1], tonumber(head[2])
  return true
end

local function is_before(one, other)
  return one.score < other.score or (one.score == other.score and one.id < other.id)
end

local function take(lane, found)
  for n = 1, #found, 2 do
    ids[#ids + 1] = found[n]
    dues[#dues + 1] = tonumber(found[n + 1]) % RANK
  end
  count(lane.lane, 'r', -#found / 2)
  count(lane.lane, 'x', #found / 2)
end

-- From the lane with the first job of all, take what comes before the next lane's first; and again.
local function merge(lanes, room)
  while #lanes > 0 and room > 0 do
    local first, second = 1, nil
    for n = 2, #lanes do
      if is_before(lanes[n], lanes[first]) then
        first, second = n, first
      elseif not second or is_before(lanes[n], lanes[second]) then
        second = n
      end
    end
    local lane, found = lanes[first], nil
    if second then
      local below = '(' .. string.format('%.0f', lanes[second].score)
      found = redis.call('ZRANGEBYSCORE', lane.key, '-inf', below, 'WITHSCORES', 'LIMIT', 0, room)
      if #found == 0 then found = { lane.id, lane.score } end
      redis.call('ZREMRANGEBYRANK', lane.key, 0, #found / 2 - 1)
    else
      found = redis.call('ZPOPMIN', lane.key, room)
    end
    take(lane, found)
    room = room - #found / 2
    -- What is full need not know what it leaves; the next claim does.
    if room > 0 and not look(lane) then table.remove(lanes, first) end
  end
end

for _, share in ipairs(shares) do
  local lanes, but = {}, {}
  for _, queue in ipairs(share[3]) do but[queue] = true end
  for _, lane in ipairs(open) do
    local is_public = string.sub(lane.queue, 1, 1) ~= '@' and not but[lane.queue]
    local is_asked = lane.queue == share[1] or (share[1] == '*' and is_public)
    if is_asked and look(lane) then lanes[#lanes + 1] = lane end
  end
  merge(lanes, math.min(share[2], limit - #ids))
end
if #ids == 0 then
  settle()
  return { now, next_due, false, ids, {}, {}, {}, {}, {} }
end

local states, bodies = read_many('HMGET', base .. ':state', ids), read_many('HMGET', base .. ':body', ids)
local common = now * 1000
local fences, attempts, releases, written, running, others = {}, {}, {}, {}, {}, {}
for n, id in ipairs(ids) do
  local fence, attempt, released, lines = common, 1, 0, ''
  if states[n] then
    local fields, kept = rarely().read_state(states[n])
    if fields[2] >= common then others[#others + 1] = id .. struct.pack('>I8', fields[2] + 1) end
    fence, attempt, released, lines = math.max(fields[2] + 1, fence), fields[3] + 1, fields[4], kept
  end
  local _, _, lease, is_special = struct.unpack('>I6hI6B', bodies[n])
  if is_special == 1 then
    local job = rarely().read_body(bodies[n])
    if job.window == 'p' then rarely().free_key(id, job.task .. '\n' .. job.key, 'p') end
    if job.schedule then redis.call('HINCRBY', base .. ':running_of', job.schedule, 1) end
  end
  fences[n], attempts[n], releases[n] = fence, attempt, released
  written[n * 2 - 1] = id
  written[n * 2] = cmsgpack.pack({ 'x', fence, attempt, released, dues[n], replica, now, false, lease }) .. lines
  running[n * 2 - 1], running[n * 2] = now + lease, id
end
write_many('HSET', base .. ':state', written)
write_many('ZADD', base .. ':running', running)
write_many('SADD', base .. ':held:' .. replica, ids)
local kept = struct.pack('>I8I4', common, #ids) .. table.concat(ids) .. table.concat(others)
redis.call('SET', token_key, kept, 'PX', TOKEN_LIFE)
settle()
return { now, next_due, false, ids, fences, attempts, releases, dues, bodies }
