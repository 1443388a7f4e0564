-- logs: a job's log lines in the order they came.
-- KEYS[1] base   ARGV[1] id   ARGV[2] how many to leave out   ARGV[3] how many
-- touches  base:log:<id>
return redis.call('LRANGE', KEYS[1] .. ':log:' .. ARGV[1], ARGV[2], ARGV[2] + ARGV[3] - 1)
