-- report: keep what claims that are still held say of themselves; answer per note 1 if it was kept, else 0.
-- KEYS[1] base   ARGV[1] msgpack [[id, fence, progress, user error, [[number, line, at, attempt], ...]], ...]
-- touches  base:state base:body base:delayed base:lane:<lane> base:notes (hash: id to msgpack progress, user error)
--   base:log:<id> (list of lines; one that begins with ! says when it was cut)  base:logged:<id> (set of what was kept)
-- uses  clock basics records
local KEPT_LINES = 1000

local function keep_line(id, fence, line)
  local name = string.format('%.0f %.0f', fence, line[1])
  local kept = redis.call('SCARD', base .. ':logged:' .. id)
  if kept < KEPT_LINES then
    if redis.call('SADD', base .. ':logged:' .. id, name) == 1 then
      redis.call('RPUSH', base .. ':log:' .. id, line[2])
    end
  elseif kept == KEPT_LINES and redis.call('SISMEMBER', base .. ':logged:' .. id, name) == 0 then
    redis.call('SADD', base .. ':logged:' .. id, 'cut')
    redis.call('RPUSH', base .. ':log:' .. id, string.format('!%.0f %s', line[4], line[3]))
  end
end

local answers = {}
for n, note in ipairs(cmsgpack.unpack(ARGV[1])) do
  local id, fence, progress, user_error, lines = unpack(note)
  local text = redis.call('HGET', base .. ':state', id)
  local fields = text and read_state(text)
  answers[n] = fields and fields[1] == 'x' and fields[2] == fence and 1 or 0
  if answers[n] == 1 then
    if progress or user_error then
      local before = redis.call('HGET', base .. ':notes', id)
      local said = before and cmsgpack.unpack(before) or { false, false }
      redis.call('HSET', base .. ':notes', id, cmsgpack.pack({ progress or said[1], user_error or said[2] }))
    end
    for _, line in ipairs(lines) do keep_line(id, fence, line) end
  end
end
return answers
