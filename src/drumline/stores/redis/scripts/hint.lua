-- hint: tell the listeners of a channel that there may be news.
-- KEYS[1] base   ARGV[1] channel, without base
-- touches nothing; publishes on base:<channel>
return redis.call('PUBLISH', KEYS[1] .. ':' .. ARGV[1], '')
