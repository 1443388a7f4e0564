-- now: the fleet's clock.
-- KEYS[1] base
-- touches  base:time
-- uses  clock
return now
