-- expired: claims whose lease has passed, the longest past first.
-- KEYS[1] base   ARGV[1] how many at most
-- touches  base:time base:running base:state base:body
-- uses  clock basics records claims
return show_claims(redis.call('ZRANGEBYSCORE', base .. ':running', '-inf', now, 'LIMIT', 0, ARGV[1]))
