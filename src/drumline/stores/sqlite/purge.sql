-- name: find_ledgers
-- Some of the schedules that have ticks to forget, by one look into the index for each that has any.
with recursive ledger (schedule) as (
  select min(schedule)
  from drumline_tick
  union all
  select (select min(schedule) from drumline_tick where drumline_tick.schedule > ledger.schedule)
  from ledger
  where schedule is not null)
select schedule
from ledger
where schedule is not null
  and exists (
    select 1
    from drumline_tick
    where drumline_tick.schedule = ledger.schedule
      and recorded <= :oldest
      and (instant, replica, mark) <= (
        select instant, replica, mark
        from drumline_tick as newer
        where newer.schedule = ledger.schedule
        order by instant desc, replica desc, mark desc
        limit 1
        offset :newest))
limit :limit

-- name: forget_old_ticks
-- Forget the oldest ticks of a schedule that are older than its newest ones and than the time for which all are kept.
delete from drumline_tick
where (schedule, replica, mark) in (
  select schedule, replica, mark
  from drumline_tick
  where schedule = :schedule
    and (instant, replica, mark) <= (
      select instant, replica, mark
      from drumline_tick
      where schedule = :schedule
      order by instant desc, replica desc, mark desc
      limit 1
      offset :newest)
    and recorded <= :oldest
  order by instant, replica, mark
  limit :limit)
returning replica, mark, coalesce(until, instant)

-- name: remember_purge
-- Ticks up to here may be forgotten.
insert into drumline_ledger (schedule, purged_to, purged_start)
values (:schedule, :to, :start)
on conflict (schedule) do update
set purged_to = max(purged_to, excluded.purged_to),
    purged_start = max(purged_start, excluded.purged_start)

-- name: forget_audit
-- Forget old audit rows.
delete from drumline_audit
where id in (select id from drumline_audit where at <= :oldest order by at, id limit :limit)
returning 1

-- name: forget_series
-- Forget old minutes.
delete from drumline_series
where (minute, queue, task) in (
  select minute, queue, task
  from drumline_series
  where minute <= :oldest
  order by minute
  limit :limit)
returning 1

-- name: forget_replicas
-- Forget replicas that have not been heard of for long.
delete from drumline_replica
where id in (select id from drumline_replica where seen <= :oldest limit :limit)
returning 1

-- name: forget_keys
-- Forget keys that are held no more.
delete from drumline_key
where (task, key) in (select task, key from drumline_key where until <= :oldest order by until limit :limit)
returning 1

-- name: forget_hints
-- Forget hints of queues and replicas that have been quiet for long.
delete from drumline_hint
where news <= :oldest

-- name: join_private_totals
-- Add to one row for each task what private queues have come to of which nothing is left.
-- Each replica has its own, and replicas come and go.
insert into drumline_total (
  queue, task, ready, delayed, running, done, dead, cancelled, attempts, total_done, total_failures, last_error)
select :private, task, 0, 0, 0, 0, 0, 0, attempts, total_done, total_failures, last_error
from drumline_total
where queue > :private
  and queue < :behind
  and (ready, delayed, running, done, dead, cancelled) = (0, 0, 0, 0, 0, 0)
on conflict (queue, task) do update
set attempts = attempts + excluded.attempts,
    total_done = total_done + excluded.total_done,
    total_failures = total_failures + excluded.total_failures,
    last_error = coalesce(excluded.last_error, last_error)

-- name: drop_private_totals
-- And forget their own rows.
delete from drumline_total
where queue > :private
  and queue < :behind
  and (ready, delayed, running, done, dead, cancelled) = (0, 0, 0, 0, 0, 0)
