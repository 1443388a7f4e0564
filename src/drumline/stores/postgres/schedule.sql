-- name: find_schedules
-- All schedules, by name, or those that are named.
select
  name, spec, version, declared, begun, last_tick, last_fired, last_mark, leader, paused, paused_by, orphaned,
  total_runs, total_failures
from {schema}.schedule
where %(names)s::text is null
   or name in (select json_array_elements_text(%(names)s::text::json))
order by name

-- name: find_schedule
-- One schedule, as far as steps have to know it.
select spec, version, paused, paused_by, orphaned, begun
from {schema}.schedule
where name = %(name)s

-- name: find_plans
-- Schedules as far as their ticks have to know them.
select name, spec, version, paused, last_tick, purged_to, purged_start
from {schema}.schedule
left join {schema}.ledger on ledger.schedule = schedule.name
where name in (select json_array_elements_text(%(names)s::text::json))

-- name: add_schedule
-- Hold a new schedule.
insert into {schema}.schedule (name, spec, declared, begun, last_tick, paused, paused_by)
values (%(name)s, %(spec)s, %(now)s, %(now)s, %(now)s, %(paused)s, %(paused_by)s)
on conflict (name) do nothing
returning name

-- name: change_schedule
-- Hold another version of the schedule.
update {schema}.schedule
set spec = %(spec)s
where name = %(name)s

-- name: restart_schedule
-- Let the schedule start from now.
update {schema}.schedule
set begun = %(now)s,
    last_tick = %(now)s,
    orphaned = null
where name = %(name)s

-- name: drop_schedule
-- Forget a schedule.
delete from {schema}.schedule
where name = %(name)s

-- name: count_running
-- How many jobs of each schedule are running.
select schedule, count(*)
from {schema}.job
where lease is not null
  and schedule is not null
group by schedule

-- name: change_version
-- Schedules or pauses have changed.
update {schema}.store
set version = version + 1
returning version

-- name: set_version
-- The schedule has changed.
update {schema}.schedule
set version = %(version)s
where name = %(name)s

-- name: find_ticks
-- Those of the ticks, given as schedule, replica and mark, that stand in the ledger, with their jobs.
select found.schedule, found.replica, found.mark, found.job::text
from json_array_elements(%(places)s::text::json) as place
cross join lateral (
  select schedule, replica, mark, job
  from {schema}.tick
  where schedule = place ->> 0
    and replica = place ->> 1
    and mark = place ->> 2
  -- One at most: so that each is looked up, and the ledger is not read from end to end.
  limit 1
) as found

-- name: keep_ticks
-- Write rows of the ledger.
insert into {schema}.tick (
  schedule, replica, mark, instant, decision, reason, by, recorded, job, until, count, rule)
select schedule, replica, mark, instant, decision, reason, by, recorded, job, until, count, rule
from json_to_recordset(%(rows)s::text::json) as new (
  schedule text, replica text, mark text, instant bigint, decision text, reason text, by text, recorded bigint,
  job uuid, until bigint, count bigint, rule text)
on conflict (schedule, replica, mark) do update
set instant = excluded.instant,
    decision = excluded.decision,
    reason = excluded.reason,
    by = excluded.by,
    recorded = excluded.recorded,
    job = excluded.job,
    until = excluded.until,
    count = excluded.count,
    rule = excluded.rule,
    outcome = null,
    run_time = null

-- name: move_on
-- Instants up to here are decided; and the newest tick that was fired, and who fired it, where one was.
update {schema}.schedule
set last_tick = greatest(last_tick, move.to),
    last_fired = coalesce(move.fired, last_fired),
    last_mark = coalesce(move.mark, last_mark),
    leader = coalesce(move.by, leader)
from json_to_recordset(%(moves)s::text::json) as move (name text, "to" bigint, fired bigint, mark text, by text)
where schedule.name = move.name

-- name: tell_orphaned
-- The ledger tells that nobody declares the schedule.
update {schema}.schedule
set orphaned = %(now)s
where name = %(name)s

-- name: find_unfinished
-- The unfinished jobs of a schedule, the oldest first.
select id::text, queue, waits_for::text, options
from {schema}.job
where schedule = %(schedule)s
order by created, id
