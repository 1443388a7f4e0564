-- name: count_jobs
-- Jobs by queue and task, and what they have come to.
select queue, task, ready, delayed, running, done, dead, cancelled, attempts, total_done, total_failures, last_error
from drumline_total
order by queue, task

-- name: find_oldest_ready
-- Since when the oldest ready job of each queue, task and priority is due: one look into the index for each priority in use.
with recursive lane (queue, task, rank) as (
  select queue, task, (
    select rank
    from drumline_job
    where state = 'r'
      and queue = drumline_total.queue
      and task = drumline_total.task
    order by rank
    limit 1
  )
  from drumline_total
  where ready > 0
  union all
  select queue, task, (
    select rank
    from drumline_job
    where state = 'r'
      and queue = lane.queue
      and task = lane.task
      and rank > lane.rank
    order by rank
    limit 1
  )
  from lane
  where rank is not null
)
select queue, task, (
  select due
  from drumline_job
  where state = 'r'
    and queue = lane.queue
    and task = lane.task
    and rank = lane.rank
  order by due
  limit 1
)
from lane
where rank is not null

-- name: read_ticks
-- The ledger, newest recorded first.
select schedule, mark, replica, instant, decision, reason, by, recorded, job, until, count, outcome, run_time,
  rule
from drumline_tick
where (recorded, instant, schedule, replica, mark) < (:recorded, :instant, :schedule, :replica, :mark)
order by recorded desc, instant desc, schedule desc, replica desc, mark desc
limit :limit

-- name: read_ticks_of
-- The ledger of one schedule, newest recorded first.
select schedule, mark, replica, instant, decision, reason, by, recorded, job, until, count, outcome, run_time,
  rule
from drumline_tick
where schedule = :name
  and (recorded, instant, replica, mark) < (:recorded, :instant, :replica, :mark)
order by recorded desc, instant desc, replica desc, mark desc
limit :limit

-- name: find_all_running
-- Which replica runs which jobs.
select replica, id
from drumline_job
where state = 'x'

-- name: read_lines
-- A job's log lines in the order they came.
select number, at, level, message, fields, attempt
from drumline_log
where job = :job
  and place >= :after
order by place
limit :limit

-- name: read_audit
-- Who did what, newest first.
select id, at, by, action, targets, answers, part_of
from drumline_audit
where (at, id) < (:at, :id)
order by at desc, id desc
limit :limit
