-- name: lock_schedules
-- Hold the schedules, in the order of their names: whoever fires or ends a job of theirs waits.
select name
from {schema}.schedule
where name = any (%(names)s)
order by name
for no key update

-- name: lock_action
-- Of two who do the same thing at once, the second waits, and finds it done.
select pg_advisory_xact_lock(hashtextextended(%(id)s, 0))

-- name: find_schedules_of
-- The schedules whose ticks these unfinished jobs are.
select distinct schedule
from {schema}.job
where id = any (%(ids)s::uuid[])
  and schedule is not null

-- name: lock_jobs
-- Hold the unfinished jobs, in their order, as all who hold several: so that they wait for each other in turn.
select id
from {schema}.job
where id = any (%(ids)s::uuid[])
order by id
for update

-- name: tell_ticks
-- The ticks' ledger rows learn what became of their jobs.
update {schema}.tick
set outcome = o.outcome,
    run_time = o.run_time
from json_to_recordset(%(ends)s::json) as o (id uuid, outcome text, run_time bigint)
where tick.job = o.id

-- name: let_go
-- The jobs that waited for these wait no longer.
with present as materialized (
  select {schema}.now_ms() as now
)
update {schema}.job
set state = (case when due > now then 'd' else 'r' end)::"char",
    waits_for = null
from present, json_to_recordset(%(ends)s::json) as o (id uuid)
where waits_for = o.id
  and state = 'b'
returning queue, task, state::text

-- name: add_runs
-- Add closed attempts to those of their schedule.
update {schema}.schedule
set total_runs = total_runs + runs,
    total_failures = schedule.total_failures + added.failures
from json_to_recordset(%(runs)s::json) as added (name text, runs bigint, failures bigint)
where schedule.name = added.name

-- name: end_waiting
-- End a job as cancelled that has not begun, and answer with it.
with present as materialized (
  select {schema}.now_ms() as now
),
ended as (
  delete from {schema}.job
  using present
  where job.id = %(id)s::uuid
    and state in ('d', 'r', 'b')
  returning job.*, present.now
),
recorded as (
  insert into {schema}.history (
    id, queue, task, state, due, fence, attempt, created, finished, expires, args, options, key, key_window, key_span,
    tags, meta, source, origin, schedule, tick, progress, user_error, error, attempts, closed, result_is_repr)
  select
    id, queue, task, 'c', due, fence, attempt, created, now, now + %(keep)s, args, options, key, key_window, key_span, tags,
    meta, source, origin, schedule, tick, progress, user_error, error, attempts, closed, false
  from ended
),
freed as (
  delete from {schema}.key
  using ended
  where ended.key is not null
    and key.task = ended.task
    and key.key = ended.key
    and key.job = ended.id
    and key.key_window <> 't'
),
unwatched as (
  delete from {schema}.watch
  using ended
  where watch.job = ended.id
  returning watch.job
)
select queue, task, state::text, schedule, unwatched.job is not null
from ended
left join unwatched on unwatched.job = ended.id
