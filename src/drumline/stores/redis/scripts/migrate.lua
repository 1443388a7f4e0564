-- migrate: bring the keys to this version; answer the version that stands, and when the store began.
-- KEYS[1] base   ARGV[1] this code's version
-- touches  base:schema base:birth (by which a store that began anew is known)
local base = KEYS[1]
if redis.call('EXISTS', base .. ':schema') == 0 then
  local moment = redis.call('TIME')
  redis.call('SET', base .. ':schema', ARGV[1])
  redis.call('SET', base .. ':birth', moment[1] .. '.' .. moment[2])
end
return { tonumber(redis.call('GET', base .. ':schema')), redis.call('GET', base .. ':birth') }
