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
select spec, version, paused, paused_by, orphaned, last_tick, purged_to, purged_start
from {schema}.schedule
left join {schema}.ledger on ledger.schedule = schedule.name
where name = %(name)s

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

-- name: find_tick
-- The ledger's row of one tick.
select job::text
from {schema}.tick
where schedule = %(schedule)s
  and replica = %(replica)s
  and mark = %(mark)s

-- name: keep_tick
-- Write one row of the ledger.
insert into {schema}.tick (
  schedule, replica, mark, instant, decision, reason, by, recorded, job, until, count, rule)
values (
  %(schedule)s, %(replica)s, %(mark)s, %(instant)s, %(decision)s, %(reason)s, %(by)s, %(now)s, %(job)s::uuid,
  %(until)s, %(count)s, %(rule)s)
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
-- Instants up to here are decided.
update {schema}.schedule
set last_tick = greatest(last_tick, %(to)s)
where name = %(name)s

-- name: tell_orphaned
-- The ledger tells that nobody declares the schedule.
update {schema}.schedule
set orphaned = %(now)s
where name = %(name)s

-- name: tell_fired
-- The newest tick that was fired, and who fired it.
update {schema}.schedule
set last_fired = %(now)s,
    last_mark = %(mark)s,
    leader = %(by)s
where name = %(name)s

-- name: find_unfinished
-- The unfinished jobs of a schedule, the oldest first.
select id::text, queue, waits_for::text, options
from {schema}.job
where schedule = %(schedule)s
order by created, id
