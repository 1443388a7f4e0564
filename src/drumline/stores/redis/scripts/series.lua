-- series: the minutes between two instants; answers minutes, and fields with numbers in turn.
-- KEYS[1] base   ARGV[1] from   ARGV[2] up to, without
-- touches  base:minutes base:series:<minute>
local base, rows = KEYS[1], {}
for _, minute in ipairs(redis.call('ZRANGEBYSCORE', base .. ':minutes', ARGV[1], '(' .. ARGV[2])) do
  rows[#rows + 1] = { minute, redis.call('HGETALL', base .. ':series:' .. minute) }
end
return rows
