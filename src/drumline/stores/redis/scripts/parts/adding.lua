-- adding: make one job.
-- touches  base:body base:state base:created (zset of all jobs)  base:followers (hash: id to the ids that wait for it)
--   base:keys base:until base:named:<key> base:open:<schedule> base:of:<schedule> base:tag:<tag> (zsets of jobs, by
--   creation; `open` of unfinished ones)

local function add_tags(id, created, tags)
  for _, tag in ipairs(tags) do redis.call('ZADD', base .. ':tag:' .. tag, created, id) end
end

-- `job` is [id, lane, mode, start, rank, body, extra], `extra` is false or [key's place, window, span, on conflict,
-- schedule, tags]. With a leader, the job waits until that one has ended.
local function add_job(job, leader)
  local id, lane, due, extra = job[1], job[2], due_of(job[3], job[4]), job[7]
  redis.call('HSET', base .. ':body', id, struct.pack('>I6', now) .. job[6])
  redis.call('ZADD', base .. ':created', now, id)
  if leader then
    write_state(id, { 'w', 0, 0, 0, due, leader }, '')
    redis.call('HSET', base .. ':followers', leader, (redis.call('HGET', base .. ':followers', leader) or '') .. id)
    count(lane, 'd', 1)
  else
    place(id, lane, job[5], due)
  end
  hint_lane(lane)
  if extra then
    local key, schedule = extra[1], extra[5]
    if key then
      hold_key(id, key, extra[2], extra[3] and now + extra[3])
      redis.call('ZADD', base .. ':named:' .. string.match(key, '^[^\n]*\n(.*)$'), now, id)
    end
    if schedule then
      redis.call('ZADD', base .. ':open:' .. schedule, now, id)
      redis.call('ZADD', base .. ':of:' .. schedule, now, id)
    end
    add_tags(id, now, extra[6])
  end
  return due > now and 'd' or 'r'
end
