-- name: count_jobs
-- Jobs by queue and task, and what they have come to: what was folded, and what was not yet.
with recent as (
  select
    queue, task, sum(ready) as ready, sum(delayed) as delayed, sum(running) as running, sum(done) as done,
    sum(dead) as dead, sum(cancelled) as cancelled, sum(attempts) as attempts, sum(ran_done) as total_done,
    sum(ran_failed) as total_failures,
    (array_agg(last_error order by number desc) filter (where last_error is not null))[1] as last_error
  from {schema}.flow
  group by queue, task
)
select
  queue, task,
  coalesce(total.ready, 0) + coalesce(recent.ready, 0),
  coalesce(total.delayed, 0) + coalesce(recent.delayed, 0),
  coalesce(total.running, 0) + coalesce(recent.running, 0),
  coalesce(total.done, 0) + coalesce(recent.done, 0),
  coalesce(total.dead, 0) + coalesce(recent.dead, 0),
  coalesce(total.cancelled, 0) + coalesce(recent.cancelled, 0),
  coalesce(total.attempts, 0) + coalesce(recent.attempts, 0),
  coalesce(total.total_done, 0) + coalesce(recent.total_done, 0),
  coalesce(total.total_failures, 0) + coalesce(recent.total_failures, 0),
  coalesce(recent.last_error, total.last_error)
from {schema}.total
full join recent using (queue, task)
order by queue, task

-- name: find_oldest_ready
-- Since when the oldest ready job of each queue and task is due: one look into the index for each priority in use.
with recursive lane (queue, task, rank, due) as (
  (
    select queue, task, rank, due
    from {schema}.job
    where state = 'r'
    order by queue, task, rank, due, id
    limit 1
  )
  union all
  select following.queue, following.task, following.rank, following.due
  from lane
  cross join lateral (
    select queue, task, rank, due
    from {schema}.job
    where state = 'r'
      and (queue, task, rank) > (lane.queue, lane.task, lane.rank)
    order by queue, task, rank, due, id
    limit 1
  ) as following
)
select queue, task, min(due)
from lane
group by queue, task

-- name: read_ticks
-- The ledger, newest recorded first.
select schedule, mark, replica, instant, decision, reason, by, recorded, job::text, until, count, outcome, run_time,
  rule
from {schema}.tick
where (recorded, instant, schedule, replica, mark) < (%(recorded)s, %(instant)s, %(schedule)s, %(replica)s, %(mark)s)
order by recorded desc, instant desc, schedule desc, replica desc, mark desc
limit %(limit)s

-- name: read_ticks_of
-- The ledger of one schedule, newest recorded first.
select schedule, mark, replica, instant, decision, reason, by, recorded, job::text, until, count, outcome, run_time,
  rule
from {schema}.tick
where schedule = %(name)s
  and (recorded, instant, replica, mark) < (%(recorded)s, %(instant)s, %(replica)s, %(mark)s)
order by recorded desc, instant desc, replica desc, mark desc
limit %(limit)s

-- name: find_all_running
-- Which replica runs which jobs.
select replica, id::text
from {schema}.job
where lease is not null

-- name: read_lines
-- A job's log lines in the order they came.
select number, at, level, message, fields, attempt
from {schema}.log
where job = %(job)s::uuid
  and place >= %(after)s
order by place
limit %(limit)s

-- name: read_audit
-- Who did what, newest first.
select id, at, by, action, targets, answers, part_of
from {schema}.audit
where (at, id) < (%(at)s, %(id)s)
order by at desc, id desc
limit %(limit)s
