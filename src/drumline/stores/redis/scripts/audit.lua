-- audit: who did what, newest first, behind a place; answers [id, at, answers, row] for each.
-- KEYS[1] base   ARGV[1] at, or nothing   ARGV[2] id   ARGV[3] how many
-- touches  base:audit base:audited
local base, rank = KEYS[1], 0
local key = base .. ':audited'
if ARGV[1] ~= '' then
  if tonumber(redis.call('ZSCORE', key, ARGV[2])) == tonumber(ARGV[1]) then
    rank = redis.call('ZREVRANK', key, ARGV[2]) + 1
  else
    -- The row of the place is gone: what would stand there now?
    redis.call('ZADD', key, ARGV[1], ARGV[2] .. '\n')
    rank = redis.call('ZREVRANK', key, ARGV[2] .. '\n')
    redis.call('ZREM', key, ARGV[2] .. '\n')
  end
end
local rows = {}
for _, id in ipairs(redis.call('ZREVRANGE', key, rank, rank + ARGV[3] - 1)) do
  local row = cmsgpack.unpack(redis.call('HGET', base .. ':audit', id))
  rows[#rows + 1] = { id, row[1], row[2], row[3] }
end
return rows
