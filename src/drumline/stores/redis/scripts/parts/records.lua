-- records: how a job is kept.
-- touches  base:body (hash: id to body)  base:state (hash: id to state; a job that was never claimed mostly has none)
--   base:delayed base:lane:<queue task> (for the due time of a job without a state)
-- An id is the 16 bytes of a UUID. A lane is 'queue task': names hold no spaces.
-- A body is: created, rank, lease, is special, size of head, size of what a replacement replaces; then head (msgpack:
--   queue, task, key, window, span, schedule, kept if done, dead, cancelled, tags), and bytes that only clients read.
-- A state is msgpack, and behind it the closed attempts, a line each:
--   w waiting    fence, attempt, releases, due, the job it waits for
--   x running    fence, attempt, releases, due, replica, claimed, is cancelling, lease
--   o done, f dead, c cancelled    fence, attempt, releases, due, finished, expires, result, result is a repr

local function read_body(body)
  local created, rank, lease, _, size = struct.unpack('>I6hI6BI3', body)
  local head = cmsgpack.unpack(string.sub(body, 23, 22 + size))
  return {
    created = created, rank = rank, lease = lease, queue = head[1], task = head[2], lane = head[1] .. ' ' .. head[2],
    key = head[3], window = head[4], span = head[5], schedule = head[6],
    keep = { o = head[7], f = head[8], c = head[9] }, tags = head[10],
  }
end

local function find_job(id)
  local body = redis.call('HGET', base .. ':body', id)
  return body and read_body(body)
end

local function read_state(text)
  local offset, fields = cmsgpack.unpack_one(text)
  return fields, offset == -1 and '' or string.sub(text, offset + 1)
end

local function write_state(id, fields, lines)
  redis.call('HSET', base .. ':state', id, cmsgpack.pack(fields) .. lines)
end

-- When a waiting job without a state is due: it stands in its place only.
local function place_due(id, lane)
  local due = redis.call('ZSCORE', base .. ':delayed', id)
  return tonumber(due) or tonumber(redis.call('ZSCORE', base .. ':lane:' .. lane, id)) % RANK
end

-- The state of a job that exists, made up where none is kept.
local function find_state(id, lane, text)
  text = text or redis.call('HGET', base .. ':state', id)
  if text then return read_state(text) end
  return { 'w', 0, 0, 0, place_due(id, lane), false }, ''
end

local NAMES = { o = 'done', f = 'dead', c = 'cancelled' }

local function reads_as(fields)
  if fields[1] == 'x' then return fields[8] and 'cancelling' or 'running' end
  if fields[1] == 'w' then return (fields[6] or fields[5] > now) and 'delayed' or 'ready' end
  return NAMES[fields[1]]
end
