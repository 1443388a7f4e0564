-- counts: jobs by queue, task and state, and what they have come to.
-- KEYS[1] base
-- touches  base:time base:delayed base:body base:lane:<lane> base:lanes base:counts base:totals
-- answers  [fields and numbers in turn, fields and numbers or errors in turn]
-- uses  clock records places
follow_clock()
while not promote(SHARE) do end
settle()
return { redis.call('HGETALL', base .. ':counts'), redis.call('HGETALL', base .. ':totals') }
