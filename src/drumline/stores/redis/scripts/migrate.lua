-- migrate: bring the keys to this version; answer the version that stands, and whether this call began it.
-- KEYS[1] base   ARGV[1] this code's version
-- touches  base:schema
local standing = redis.call('GET', KEYS[1] .. ':schema')
if standing then return { tonumber(standing), 0 } end
redis.call('SET', KEYS[1] .. ':schema', ARGV[1])
return { tonumber(ARGV[1]), 1 }
