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
select spec, version, paused, paused_by, orphaned, begun
from drumline_schedule
where name = :name

-- name: find_plans
-- Schedules as far as their ticks have to know them.
select plan.name, plan.spec, plan.version, plan.paused, plan.last_tick, ledger.purged_to, ledger.purged_start
from json_each(:names) as wanted
cross join drumline_schedule as plan on plan.name = wanted.value
left join drumline_ledger as ledger on ledger.schedule = plan.name

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

-- name: find_ticks
-- Those of the ticks, given as schedule, replica and mark, that stand in the ledger, with their jobs.
select tick.schedule, tick.replica, tick.mark, tick.job
from json_each(:places) as place
cross join drumline_tick as tick
  on tick.schedule = json_extract(place.value, '$[0]')
  and tick.replica = json_extract(place.value, '$[1]')
  and tick.mark = json_extract(place.value, '$[2]')

-- name: keep_ticks
-- Write rows of the ledger.
insert or replace into drumline_tick (
  schedule, replica, mark, instant, decision, reason, by, recorded, job, until, count, rule)
select
  json_extract(value, '$.schedule'), json_extract(value, '$.replica'), json_extract(value, '$.mark'),
  json_extract(value, '$.instant'), json_extract(value, '$.decision'), json_extract(value, '$.reason'),
  json_extract(value, '$.by'), json_extract(value, '$.recorded'), json_extract(value, '$.job'),
  json_extract(value, '$.until'), json_extract(value, '$.count'), json_extract(value, '$.rule')
from json_each(:rows)

-- name: move_on
-- Instants up to here are decided; and the newest tick that was fired, and who fired it, where one was.
update drumline_schedule
set last_tick = max(last_tick, json_extract(move.value, '$.to')),
    last_fired = coalesce(json_extract(move.value, '$.fired'), last_fired),
    last_mark = coalesce(json_extract(move.value, '$.mark'), last_mark),
    leader = coalesce(json_extract(move.value, '$.by'), leader)
from json_each(:moves) as move
where name = json_extract(move.value, '$.name')

-- name: tell_orphaned
-- The ledger tells that nobody declares the schedule.
update drumline_schedule
set orphaned = :now
where name = :name

-- name: find_unfinished
-- The unfinished jobs of a schedule, the oldest first.
select id, queue, waits_for, options
from drumline_job
where schedule = :schedule
order by created, id
