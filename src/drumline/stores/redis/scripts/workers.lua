-- workers: the replicas that are known, and what each runs; answers [now, [started, seen, beats every, info, ids],
--   ...].
-- KEYS[1] base
-- touches  base:time base:replicas base:held:<replica>
-- uses  clock
local rows, replicas = {}, redis.call('HGETALL', base .. ':replicas')
for n = 1, #replicas, 2 do
  local member = cmsgpack.unpack(replicas[n + 1])
  local running = redis.call('SMEMBERS', base .. ':held:' .. replicas[n])
  rows[#rows + 1] = { member[1], member[2], member[3], member[5], running }
end
return { now, rows }
