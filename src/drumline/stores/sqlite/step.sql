-- name: add_totals
-- Add what has changed to the counts of one task in one queue.
insert into drumline_total (
  queue, task, ready, delayed, running, done, dead, cancelled, attempts, total_done, total_failures, last_error)
values (
  :queue, :task, :ready, :delayed, :running, :done, :dead, :cancelled, :attempts, :total_done, :total_failures,
  :last_error)
on conflict (queue, task) do update
set ready = ready + excluded.ready,
    delayed = delayed + excluded.delayed,
    running = running + excluded.running,
    done = done + excluded.done,
    dead = dead + excluded.dead,
    cancelled = cancelled + excluded.cancelled,
    attempts = attempts + excluded.attempts,
    total_done = total_done + excluded.total_done,
    total_failures = total_failures + excluded.total_failures,
    last_error = coalesce(excluded.last_error, last_error)

-- name: find_point
-- One minute of one task in one queue, as it stands.
select done, failed, dead, cancelled, wait, run
from drumline_series
where minute = :minute
  and queue = :queue
  and task = :task

-- name: keep_point
-- The same, as it stands now.
insert or replace into drumline_series (minute, queue, task, done, failed, dead, cancelled, wait, run)
values (:minute, :queue, :task, :done, :failed, :dead, :cancelled, :wait, :run)

-- name: add_runs
-- Add closed attempts to those of their schedule.
update drumline_schedule
set total_runs = total_runs + :runs,
    total_failures = total_failures + :failures
where name = :name

-- name: add_hint
-- There is news about the topic. Never a number it had before, also when the row was purged in between.
insert into drumline_hint (topic, news)
values (:topic, :now)
on conflict (topic) do update
set news = max(news + 1, excluded.news)
returning news
