-- name: forget_old_jobs
-- Forget a slice of the ended jobs that have outlived their retention, and say how many.
with present as materialized (
  select {schema}.now_ms() as now
),
old as materialized (
  select id
  from {schema}.history
  where expires <= (select now from present)
  order by expires
  limit %(limit)s
  for update skip locked
),
gone as (
  delete from {schema}.history
  using old
  where history.id = old.id
  returning history.id, queue, task, state
),
lines as (
  delete from {schema}.log
  using gone
  where log.job = gone.id
),
tags as (
  delete from {schema}.tag
  using gone
  where tag.job = gone.id
),
counted as (
  insert into {schema}.flow (minute, queue, task, done, dead, cancelled)
  select
    min(now) / 60000 * 60000, queue, task, - count(*) filter (where state = 'o'),
    - count(*) filter (where state = 'f'), - count(*) filter (where state = 'c')
  from gone, present
  group by queue, task
)
select count(*)
from gone

-- name: forget_job
-- Forget an ended job, and say how many there were.
with present as materialized (
  select {schema}.now_ms() as now
),
gone as (
  delete from {schema}.history
  where id = %(id)s::uuid
  returning id, queue, task, state
),
lines as (
  delete from {schema}.log
  using gone
  where log.job = gone.id
),
tags as (
  delete from {schema}.tag
  using gone
  where tag.job = gone.id
),
counted as (
  insert into {schema}.flow (minute, queue, task, done, dead, cancelled)
  select
    min(now) / 60000 * 60000, queue, task, - count(*) filter (where state = 'o'),
    - count(*) filter (where state = 'f'), - count(*) filter (where state = 'c')
  from gone, present
  group by queue, task
)
select count(*)
from gone

-- name: find_ledgers
-- Some of the schedules that have ticks to forget, by one look into the index for each that has any.
with recursive ledger (schedule) as (
  select min(schedule)
  from {schema}.tick
  union all
  select (select min(schedule) from {schema}.tick where tick.schedule > ledger.schedule)
  from ledger
  where schedule is not null
)
select schedule
from ledger
where schedule is not null
  and exists (
    select
    from {schema}.tick
    where tick.schedule = ledger.schedule
      and recorded <= %(oldest)s
      and (instant, replica, mark) <= (
        select instant, replica, mark
        from {schema}.tick as newer
        where newer.schedule = ledger.schedule
        order by instant desc, replica desc, mark desc
        limit 1
        offset %(newest)s))
limit %(limit)s

-- name: forget_old_ticks
-- Forget the oldest ticks of a schedule that are older than its newest ones and than the time for which all are kept.
delete from {schema}.tick
where (schedule, replica, mark) in (
  select schedule, replica, mark
  from {schema}.tick
  where schedule = %(schedule)s
    and (instant, replica, mark) <= (
      select instant, replica, mark
      from {schema}.tick
      where schedule = %(schedule)s
      order by instant desc, replica desc, mark desc
      limit 1
      offset %(newest)s)
    and recorded <= %(oldest)s
  order by instant, replica, mark
  limit %(limit)s)
returning replica, mark, coalesce(until, instant)

-- name: remember_purge
-- Ticks up to here may be forgotten.
insert into {schema}.ledger (schedule, purged_to, purged_start)
values (%(schedule)s, %(to)s, %(start)s)
on conflict (schedule) do update
set purged_to = greatest(ledger.purged_to, excluded.purged_to),
    purged_start = greatest(ledger.purged_start, excluded.purged_start)

-- name: forget_audit
-- Forget old audit rows.
delete from {schema}.audit
where id in (select id from {schema}.audit where at <= %(oldest)s order by at, id limit %(limit)s)
returning 1

-- name: forget_series
-- Forget old minutes.
delete from {schema}.series
where (minute, queue, task) in (
  select minute, queue, task
  from {schema}.series
  where minute <= %(oldest)s
  order by minute
  limit %(limit)s)
returning 1

-- name: forget_replicas
-- Forget replicas that have not been heard of for long.
delete from {schema}.replica
where id in (select id from {schema}.replica where seen <= %(oldest)s limit %(limit)s)
returning 1

-- name: forget_keys
-- Forget keys that are held no more.
delete from {schema}.key
where (task, key) in (select task, key from {schema}.key where until <= %(oldest)s order by until limit %(limit)s)
returning 1

-- name: forget_tokens
-- Forget what nobody will repeat any more.
delete from {schema}.token
where at <= %(oldest)s

-- name: forget_watches
-- Forget who has waited for too long.
delete from {schema}.watch
where until <= %(oldest)s

-- name: lock_flow
-- Whether nobody else folds now.
select pg_try_advisory_xact_lock(hashtextextended(%(what)s, 0))

-- name: fold
-- Add what was appended to the counts and minutes, in one step: whoever counts sees it once.
with old as materialized (
  delete from {schema}.flow
  returning *
),
counted as (
  insert into {schema}.total as total (
    queue, task, ready, delayed, running, done, dead, cancelled, attempts, total_done, total_failures, last_error)
  select
    queue, task, sum(ready), sum(delayed), sum(running), sum(done), sum(dead), sum(cancelled), sum(attempts),
    sum(ran_done), sum(ran_failed),
    (array_agg(last_error order by number desc) filter (where last_error is not null))[1]
  from old
  group by queue, task
  on conflict (queue, task) do update
  set ready = total.ready + excluded.ready,
      delayed = total.delayed + excluded.delayed,
      running = total.running + excluded.running,
      done = total.done + excluded.done,
      dead = total.dead + excluded.dead,
      cancelled = total.cancelled + excluded.cancelled,
      attempts = total.attempts + excluded.attempts,
      total_done = total.total_done + excluded.total_done,
      total_failures = total.total_failures + excluded.total_failures,
      last_error = coalesce(excluded.last_error, total.last_error)
),
bucket as (
  select minute, queue, task, nth, sum(waits) as waits, sum(runs) as runs
  from (
    select minute, queue, task, unnest(waits) as nth, 1 as waits, 0 as runs
    from old
    union all
    select minute, queue, task, unnest(runs), 0, 1
    from old
  ) as entry
  group by minute, queue, task, nth
),
point as (
  select
    minute, queue, task, sum(ran_done) as done, sum(ran_failed) as failed, sum(ran_dead) as dead,
    sum(ran_cancelled) as cancelled
  from old
  where attempts > 0
  group by minute, queue, task
)
insert into {schema}.series as series (minute, queue, task, done, failed, dead, cancelled, waits, runs)
select
  minute, queue, task, done, failed, dead, cancelled,
  array(
    select coalesce(waits, 0)::bigint
    from generate_series(0, %(last)s) as nth (nth)
    left join bucket
      on bucket.nth = nth.nth
      and (bucket.minute, bucket.queue, bucket.task) = (point.minute, point.queue, point.task)
    order by nth.nth),
  array(
    select coalesce(runs, 0)::bigint
    from generate_series(0, %(last)s) as nth (nth)
    left join bucket
      on bucket.nth = nth.nth
      and (bucket.minute, bucket.queue, bucket.task) = (point.minute, point.queue, point.task)
    order by nth.nth)
from point
on conflict (minute, queue, task) do update
set done = series.done + excluded.done,
    failed = series.failed + excluded.failed,
    dead = series.dead + excluded.dead,
    cancelled = series.cancelled + excluded.cancelled,
    waits = array(
      select known + added
      from unnest(series.waits, excluded.waits) with ordinality as pair (known, added, nth)
      order by nth),
    runs = array(
      select known + added
      from unnest(series.runs, excluded.runs) with ordinality as pair (known, added, nth)
      order by nth)

-- name: join_private_totals
-- Move to one row for each task what private queues have come to of which nothing is left.
-- Each replica has its own, and replicas come and go.
with spent as (
  delete from {schema}.total
  where queue > %(private)s
    and queue < %(behind)s
    and (ready, delayed, running, done, dead, cancelled) = (0, 0, 0, 0, 0, 0)
  returning *
)
insert into {schema}.total as total (
  queue, task, ready, delayed, running, done, dead, cancelled, attempts, total_done, total_failures, last_error)
select %(private)s, task, 0, 0, 0, 0, 0, 0, sum(attempts), sum(total_done), sum(total_failures), max(last_error)
from spent
group by task
on conflict (queue, task) do update
set attempts = total.attempts + excluded.attempts,
    total_done = total.total_done + excluded.total_done,
    total_failures = total.total_failures + excluded.total_failures,
    last_error = coalesce(excluded.last_error, total.last_error)
