-- command: act on jobs; answer per job what came of it.
-- KEYS[1] base   ARGV[1] msgpack [id of the command, kind, mode, start, audit row, [id, ...]]
-- touches  base:time base:audit base:audited base:body base:state base:notes base:created base:delayed base:lane:<lane>
--   base:lanes base:counts base:keys base:until base:named:<key> base:open:<schedule> base:of:<schedule> base:tag:<tag>
--   base:tick_of base:ticks base:followers base:expires base:dead base:cancelled base:log:<id> base:logged:<id>
-- uses  clock basics records telling places keys ending forgetting auditing
local command, kind, mode, start, row, ids = unpack(cmsgpack.unpack(ARGV[1]))
local answers = find_answers(command)
if answers then return answers end

local steps = {}

function steps.cancel(id, job, fields, lines)
  if fields[1] == 'w' then
    cancel_waiting(id, job, fields, lines)
    return 'applied'
  end
  if fields[1] ~= 'x' then return 'refused' end
  ask_to_stop(id, fields, lines)
  return 'requested'
end

function steps.retry(id, job, fields, lines)
  if not NAMES[fields[1]] then return 'refused' end
  if job.key then
    local key = job.task .. '\n' .. job.key
    local holder = find_holder(key)
    if holder and holder ~= id then return 'key taken' end
    -- From enqueue, also for a job that is retried much later.
    hold_key(id, key, job.window, job.span and job.created + job.span)
  end
  count(job.lane, fields[1], -1)
  redis.call('ZREM', base .. ':expires', id)
  redis.call('ZREM', base .. ':dead', id)
  redis.call('ZREM', base .. ':cancelled', id)
  redis.call('HDEL', base .. ':notes', id)
  if job.schedule then redis.call('ZADD', base .. ':open:' .. job.schedule, job.created, id) end
  write_state(id, { 'w', fields[2], 0, 0, now, false }, lines)
  place(id, job.lane, job.rank, now)
  hint_lane(job.lane)
  return 'applied'
end

function steps.discard(id, job, fields)
  if not NAMES[fields[1]] then return 'refused' end
  forget(id, job, fields)
  return 'applied'
end

function steps.reschedule(id, job, fields, lines)
  if fields[1] ~= 'w' then return 'refused' end
  displace(id, job.lane, fields)
  fields[5] = due_of(mode, start)
  if fields[6] then count(job.lane, 'd', 1) else place(id, job.lane, job.rank, fields[5]) end
  if redis.call('HEXISTS', base .. ':state', id) == 1 then write_state(id, fields, lines) end
  hint_lane(job.lane)
  return 'applied'
end

answers = {}
for n, id in ipairs(ids) do
  local job = find_job(id)
  if job then
    answers[n] = steps[kind](id, job, find_state(id, job.lane))
  else
    answers[n] = 'not found'
  end
end
tell_audit(command, answers, row)
settle()
return answers
