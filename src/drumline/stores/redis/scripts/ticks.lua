-- ticks: rows of the ledger, newest recorded first, behind a place.
-- KEYS[1] base   ARGV[1] schedule, or nothing for all   ARGV[2] recorded, or nothing   ARGV[3] tick   ARGV[4] how many
-- touches  base:ledger base:ledger:<schedule> base:ticks
local base = KEYS[1]
local key = base .. ':ledger' .. (ARGV[1] ~= '' and ':' .. ARGV[1] or '')
local rank = 0
if ARGV[2] ~= '' then
  if tonumber(redis.call('ZSCORE', key, ARGV[3])) == tonumber(ARGV[2]) then
    rank = redis.call('ZREVRANK', key, ARGV[3]) + 1
  else
    -- The row of the place is gone: what would stand there now?
    redis.call('ZADD', key, ARGV[2], ARGV[3] .. '\n')
    rank = redis.call('ZREVRANK', key, ARGV[3] .. '\n')
    redis.call('ZREM', key, ARGV[3] .. '\n')
  end
end
local rows = {}
for _, tick in ipairs(redis.call('ZREVRANGE', key, rank, rank + ARGV[4] - 1)) do
  rows[#rows + 1] = cmsgpack.unpack(redis.call('HGET', base .. ':ticks', tick))
end
return rows
