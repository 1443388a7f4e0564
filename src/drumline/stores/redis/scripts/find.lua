-- find: those of these jobs that exist and fit, in the order asked for.
-- KEYS[1] base   ARGV[1] msgpack [[id, ...], filter as `show_jobs` takes it]
-- touches  base:time base:body base:state base:notes base:running base:delayed base:lane:<lane>
-- answers  [now, jobs]
-- uses  clock basics records showing
local ids, where = unpack(cmsgpack.unpack(ARGV[1]))
return { now, show_jobs(ids, where) }
