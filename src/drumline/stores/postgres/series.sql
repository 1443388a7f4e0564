-- name: read_series
-- Some minutes, as far as they were folded.
select minute, queue, task, done, failed, dead, cancelled, waits, runs
from {schema}.series
where minute >= %(start)s
  and minute < %(end)s

-- name: read_recent_series
-- The same minutes, as far as they were not.
with recent as (
  select *
  from {schema}.flow
  where attempts > 0
    and minute >= %(start)s
    and minute < %(end)s
),
bucket as (
  select minute, queue, task, nth, sum(waits) as waits, sum(runs) as runs
  from (
    select minute, queue, task, unnest(waits) as nth, 1 as waits, 0 as runs
    from recent
    union all
    select minute, queue, task, unnest(runs), 0, 1
    from recent
  ) as entry
  group by minute, queue, task, nth
),
place as (
  select
    minute, queue, task, sum(ran_done) as done, sum(ran_failed) as failed, sum(ran_dead) as dead,
    sum(ran_cancelled) as cancelled
  from recent
  group by minute, queue, task
)
select
  minute, queue, task, done, failed, dead, cancelled,
  array(
    select coalesce(waits, 0)::bigint
    from generate_series(0, %(last)s) as nth (nth)
    left join bucket
      on bucket.nth = nth.nth
      and (bucket.minute, bucket.queue, bucket.task) = (place.minute, place.queue, place.task)
    order by nth.nth),
  array(
    select coalesce(runs, 0)::bigint
    from generate_series(0, %(last)s) as nth (nth)
    left join bucket
      on bucket.nth = nth.nth
      and (bucket.minute, bucket.queue, bucket.task) = (place.minute, place.queue, place.task)
    order by nth.nth)
from place
