-- ledger: the row of a tick, and the change of a schedule.
-- touches  base:ticks (hash: tick to row)  base:ledger base:ledger:<schedule> (zsets by when recorded)
--   base:instants:<schedule> (zset by instant)  base:ledgers (set of schedules with rows)  base:tick_of  base:fleet
-- A tick is 'schedule\nreplica\nmark'. A row is msgpack: schedule, mark, replica, instant, decision, reason, by,
--   recorded,
-- job, until, count, outcome, run time, rule.

local function tick_name(schedule, replica, mark)
  return schedule .. '\n' .. replica .. '\n' .. mark
end

local function tell_ledger(row)
  local tick = tick_name(row[1], row[3], row[2])
  redis.call('HSET', base .. ':ticks', tick, cmsgpack.pack(row))
  redis.call('ZADD', base .. ':ledger', row[8], tick)
  redis.call('ZADD', base .. ':ledger:' .. row[1], row[8], tick)
  redis.call('ZADD', base .. ':instants:' .. row[1], row[4], tick)
  redis.call('SADD', base .. ':ledgers', row[1])
  if row[9] then redis.call('HSET', base .. ':tick_of', row[9], tick) end
end

-- The schedule, or a pause, has changed.
local function change(plan)
  local version = redis.call('HINCRBY', base .. ':fleet', 'version', 1)
  if plan then plan[14] = version end
  is_changed = true
end

-- Tell the ledger, if the schedule is paused, since when this rule has been silent: a pause under each has a row.
local function tell_pause(name, plan, rule, who)
  if not plan[11] then return end
  local since = math.max(plan[11], plan[15])
  local mark, reason = string.format('paused:%.0f', since), cjson.decode(plan[12]).why
  tell_ledger({ name, mark, '', since, 'paused', reason, who, now, false, now, 0, false, false, rule })
end

local function tell_row_of_change(name, plan, who, reason, rule)
  change(plan)
  local mark = string.format('changed:%.0f', plan[14])
  tell_ledger({ name, mark, '', now, 'changed', reason, who, now, false, false, 0, false, false, rule })
end
