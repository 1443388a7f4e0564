-- enqueue: make the jobs of each group, all or none; several callers' groups may share one call.
-- KEYS[1] base   ARGV[1] msgpack [group, ...]; a group is [job, ...]; a job is as `add_job` takes it; a
--   group that is somebody's act has that too, as `act`, and as `tell_act` takes it
-- touches  base:time base:body base:state base:created base:delayed base:lane:<lane> base:lanes base:counts base:keys
--   base:until base:named:<key> base:open:<schedule> base:of:<schedule> base:tag:<tag> base:audit base:audited
-- answers per group: 1 if all were made and are ready; [place of a job, holder] if its key is taken and it asked to
--   raise; else per job 'r' or 'd' if it was made, or [id, how it reads, whether it was replaced]
-- uses  clock basics telling

local groups = cmsgpack.unpack(ARGV[1])
local stamp = struct.pack('>I6', now)

-- Most calls make plain jobs only: without key, tags or schedule, none of which stands already. They are written
-- together, and before all else: to make the functions of the other way takes a server as long as this does.
local function are_plain()
  local ids, seen = {}, {}
  for _, jobs in ipairs(groups) do
    if jobs.act then return false end
    for _, job in ipairs(jobs) do
      local id = job[1]
      if job[7] or seen[id] then return false end
      seen[id] = true
      ids[#ids + 1] = id
    end
  end
  for _, created in ipairs(read_many('ZMSCORE', base .. ':created', ids)) do
    if created then return false end
  end
  return true
end

local function make_plain()
  local bodies, created, delayed, lanes, answers = {}, {}, {}, {}, {}
  for number, jobs in ipairs(groups) do
    local fates, are_all_ready = {}, true
    for n, job in ipairs(jobs) do
      local id, lane, due = job[1], job[2], due_of(job[3], job[4])
      bodies[#bodies + 1] = id
      bodies[#bodies + 1] = stamp .. job[6]
      created[#created + 1] = now
      created[#created + 1] = id
      hint_lane(lane)
      if due > now then
        delayed[#delayed + 1] = due
        delayed[#delayed + 1] = id
        count(lane, 'd', 1)
        fates[n], are_all_ready = 'd', false
      else
        local ready = lanes[lane] or {}
        lanes[lane] = ready
        ready[#ready + 1] = job[5] * RANK + due
        ready[#ready + 1] = id
        fates[n] = 'r'
      end
    end
    answers[number] = are_all_ready and 1 or fates
  end
  write_many('HSET', base .. ':body', bodies)
  write_many('ZADD', base .. ':created', created)
  write_many('ZADD', base .. ':delayed', delayed)
  for lane, ready in pairs(lanes) do
    write_many('ZADD', base .. ':lane:' .. lane, ready)
    redis.call('SADD', base .. ':lanes', lane)
    count(lane, 'r', #ready / 2)
    is_placed = true
  end
  settle()
  return answers
end

if are_plain() then return make_plain() end

-- uses  records places keys adding auditing

-- How the jobs of this call stand.
local made = {}

-- The first job of the group that has to raise, before anything is made.
local function find_refusal(jobs, known)
  local new, taken = {}, {}
  for n, job in ipairs(jobs) do
    local id, extra = job[1], job[7]
    if extra and extra[1] and not known[n] and not made[id] and not new[id] then
      local holder = find_holder(extra[1]) or taken[extra[1]]
      if not holder then
        taken[extra[1]] = id
        new[id] = true
      elseif extra[4] == 'raise' then
        return { n, holder }
      end
    end
  end
  return nil
end

local function stand(id, replaced)
  if made[id] == 'r' or made[id] == 'd' then return { id, made[id] == 'r' and 'ready' or 'delayed', replaced } end
  local job = find_job(id)
  -- A holder's retention may be shorter than the time for which it holds the key.
  if not job then return { id, 'done', 0 } end
  return { id, reads_as((find_state(id, job.lane))), replaced }
end

-- A waiting holder takes over all but id, key, origin and what it has come to.
local function replace(id, standing, job)
  local old = redis.call('HGET', base .. ':body', id)
  local fields, lines = find_state(id, standing.lane)
  displace(id, standing.lane, fields)
  for _, tag in ipairs(standing.tags) do redis.call('ZREM', base .. ':tag:' .. tag, id) end
  local new_size, new_part = struct.unpack('>I3I4', job[6], 10)
  local old_size, old_part = struct.unpack('>I3I4', old, 16)
  local asked = cmsgpack.unpack(string.sub(job[6], 17, 16 + new_size))
  asked[3], asked[4], asked[5], asked[6] = standing.key, standing.window, standing.span, standing.schedule
  local head = cmsgpack.pack(asked)
  redis.call('HSET', base .. ':body', id, table.concat({
    string.sub(old, 1, 6), string.sub(job[6], 1, 8), struct.pack('>BI3I4', 1, #head, new_part), head,
    string.sub(job[6], 17 + new_size, 16 + new_size + new_part), string.sub(old, 23 + old_size + old_part),
  }))
  add_tags(id, standing.created, asked[10] or {})
  fields[5] = due_of(job[3], job[4])
  if redis.call('HEXISTS', base .. ':state', id) == 1 then write_state(id, fields, lines) end
  if fields[6] then count(job[2], 'd', 1) else place(id, job[2], job[5], fields[5]) end
  made[id] = made[id] and 'changed'
  hint_lane(job[2])
end

local function enqueue_one(job)
  local id, extra = job[1], job[7]
  local holder = extra and extra[1] and find_holder(extra[1])
  if not holder then
    made[id] = add_job(job, nil)
    return made[id]
  end
  local standing = extra[4] == 'replace' and find_job(holder)
  if standing and find_state(holder, standing.lane)[1] == 'w' then
    replace(holder, standing, job)
    return stand(holder, 1)
  end
  return stand(holder, 0)
end

-- Of each job, whether it was made, or another one has taken over what it asks for.
local function find_fates(answers)
  local fates = {}
  for n, answer in ipairs(answers) do fates[n] = type(answer) == 'string' or answer[3] == 1 end
  return fates
end

local function enqueue_group(jobs)
  local ids, is_special = {}, false
  for n, job in ipairs(jobs) do
    ids[n] = job[1]
    is_special = is_special or job[7]
  end
  local known = read_many('ZMSCORE', base .. ':created', ids)
  local refusal = is_special and find_refusal(jobs, known)
  if refusal then return refusal end
  local answers, are_all_ready = {}, true
  for n, job in ipairs(jobs) do
    local id = job[1]
    if known[n] or made[id] then
      answers[n] = stand(id, 0)
    else
      answers[n] = enqueue_one(job)
    end
    are_all_ready = are_all_ready and answers[n] == 'r'
  end
  if jobs.act then tell_act(jobs.act, find_fates(answers)) end
  return are_all_ready and 1 or answers
end

local answers = {}
for n, group in ipairs(groups) do answers[n] = enqueue_group(group) end
settle()
return answers
