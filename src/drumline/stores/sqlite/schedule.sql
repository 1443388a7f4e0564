-- name: find_schedules
-- All schedules, by name, or those that are named.
select
  name, spec, version, declared, begun, last_tick, last_fired, last_mark, leader, paused, paused_by, orphaned, total_runs,
  total_failures
from drumline_schedule
where :names is null
   or name in (select value from json_each(:names))
order by name

-- name: find_schedule
-- One schedule, as far as steps have to know it.
select spec, version, paused, paused_by, orphaned, last_tick, purged_to, purged_start
from drumline_schedule
left join drumline_ledger on schedule = name
where name = :name

-- name: add_schedule
-- Hold a new schedule.
insert into drumline_schedule (name, spec, declared, begun, last_tick, paused, paused_by)
values (:name, :spec, :now, :now, :now, :paused, :paused_by)
on conflict (name) do nothing
returning name

-- name: change_schedule
-- Hold another version of the schedule.
update drumline_schedule
set spec = :spec
where name = :name

-- name: restart_schedule
-- Let the schedule start from now.
update drumline_schedule
set begun = :now,
    last_tick = :now,
    orphaned = null
where name = :name

-- name: drop_schedule
-- Forget a schedule.
delete from drumline_schedule
where name = :name

-- name: count_running
-- How many jobs of each schedule are running. The signs keep the planner from counting the waiting ones too.
select +schedule, count(*)
from drumline_job
where state = 'x'
  and +schedule is not null
group by +schedule

-- name: change_version
-- Schedules or pauses have changed.
update drumline_store
set version = version + 1
returning version

-- name: set_version
-- The schedule has changed.
update drumline_schedule
set version = :version
where name = :name

-- name: find_tick
-- The ledger's row of one tick.
select job
from drumline_tick
where schedule = :schedule
  and replica = :replica
  and mark = :mark

-- name: keep_tick
-- Write one row of the ledger.
insert or replace into drumline_tick (
  schedule, replica, mark, instant, decision, reason, by, recorded, job, until, count, rule)
values (
  :schedule, :replica, :mark, :instant, :decision, :reason, :by, :now, :job, :until, :count, :rule)

-- name: move_on
-- Instants up to here are decided.
update drumline_schedule
set last_tick = max(last_tick, :to)
where name = :name

-- name: tell_orphaned
-- The ledger tells that nobody declares the schedule.
update drumline_schedule
set orphaned = :now
where name = :name

-- name: tell_fired
-- The newest tick that was fired, and who fired it.
update drumline_schedule
set last_fired = :now,
    last_mark = :mark,
    leader = :by
where name = :name

-- name: find_unfinished
-- The unfinished jobs of a schedule, the oldest first.
select id, queue, waits_for, options
from drumline_job
where schedule = :schedule
order by created, id
