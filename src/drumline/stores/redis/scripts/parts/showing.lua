-- showing: jobs as readers get them, and the part of a filter that bodies and states answer.
-- touches  base:body base:state base:notes base:running base:delayed base:lane:<lane>

-- Of each of the jobs that exists and fits: id, body, state's nine fields, closed attempts, lease end, progress, user
--   error.
-- `where` is [how it may read, task, queue, key, schedule, tag], each false if it is not asked for.
local function show_jobs(ids, where)
  local states, tasks, queue, key, schedule, tag = unpack(where)
  local wanted = {}
  for _, state in ipairs(states or {}) do wanted[state] = true end

  local function fits(job, fields)
    if states and not wanted[reads_as(fields)] then return false end
    if (tasks and tasks ~= job.task) or (queue and queue ~= job.queue) then return false end
    if (key and key ~= job.key) or (schedule and schedule ~= job.schedule) then return false end
    if not tag then return true end
    for _, one in ipairs(job.tags) do if one == tag then return true end end
    return false
  end

  local rows = {}
  local bodies, kept = read_many('HMGET', base .. ':body', ids), read_many('HMGET', base .. ':state', ids)
  for n, id in ipairs(ids) do
    if bodies[n] then
      local job = read_body(bodies[n])
      local fields, lines = find_state(id, job.lane, kept[n])
      if fits(job, fields) then
        local lease = fields[1] == 'x' and tonumber(redis.call('ZSCORE', base .. ':running', id))
        local said = redis.call('HGET', base .. ':notes', id)
        local notes = said and cmsgpack.unpack(said) or { false, false }
        rows[#rows + 1] = {
          id, bodies[n], fields[1], fields[2], fields[3], fields[4], fields[5], fields[6] or false, fields[7] or false,
          fields[8] or false, fields[9] or false, lines, lease, notes[1], notes[2],
        }
      end
    end
  end
  return rows
end
