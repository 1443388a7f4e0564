-- forgetting: drop an ended job.
-- touches  base:body base:state base:notes base:created base:expires base:dead base:cancelled base:log:<id>
--   base:logged:<id> base:named:<key> base:of:<schedule> base:tag:<tag>

local function forget(id, job, fields)
  redis.call('HDEL', base .. ':body', id)
  redis.call('HDEL', base .. ':state', id)
  redis.call('HDEL', base .. ':notes', id)
  redis.call('ZREM', base .. ':created', id)
  redis.call('ZREM', base .. ':expires', id)
  if fields[1] == 'f' then redis.call('ZREM', base .. ':dead', id) end
  if fields[1] == 'c' then redis.call('ZREM', base .. ':cancelled', id) end
  redis.call('DEL', base .. ':log:' .. id, base .. ':logged:' .. id)
  if job.key then redis.call('ZREM', base .. ':named:' .. job.key, id) end
  if job.schedule then redis.call('ZREM', base .. ':of:' .. job.schedule, id) end
  for _, tag in ipairs(job.tags) do redis.call('ZREM', base .. ':tag:' .. tag, id) end
  count(job.lane, fields[1], -1)
end
