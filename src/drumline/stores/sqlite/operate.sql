-- name: find_audit
-- What came of an action, if it was done already.
select answers
from drumline_audit
where id = :id

-- name: add_audit
-- Who did what.
insert into drumline_audit (id, at, by, action, targets, answers, part_of)
values (:id, :now, :by, :action, :targets, :answers, :part_of)

-- name: add_pause
-- Pause a queue.
insert into drumline_pause (queue, by)
values (:queue, :by)
on conflict do nothing
returning queue

-- name: drop_pause
-- Resume a queue.
delete from drumline_pause
where queue = :queue
returning queue

-- name: find_pauses
-- The queues that are paused.
select queue, by
from drumline_pause
order by queue

-- name: find_paused_schedules
-- The schedules that are paused.
select name, paused_by
from drumline_schedule
where paused is not null
order by name

-- name: pause_schedule
-- Pause a schedule.
update drumline_schedule
set paused = :now,
    paused_by = :by
where name = :name

-- name: resume_schedule
-- Let a schedule go on, from now.
update drumline_schedule
set paused = null,
    paused_by = null,
    begun = :now,
    last_tick = :now
where name = :name

-- name: find_unfinished_job
-- An unfinished job, as far as a command has to know it.
select options
from drumline_job
where id = :id

-- name: ask_to_stop
-- Ask for a running job to be cancelled.
update drumline_job
set cancelling = 1
where id = :id
  and state = 'x'
returning replica

-- name: find_ended_job
-- An ended job, as far as a command has to know it.
select queue, task, state, options, key, key_window, key_span, created
from drumline_history
where id = :id

-- name: revive
-- Make an ended job ready again; its fence goes on.
insert into drumline_job (
  id, queue, task, state, rank, due, fence, attempt, term, created, args, options, key, key_window, key_span, tags,
  meta, source, origin, schedule, tick, error, attempts, closed)
select
  id, queue, task, 'r', :rank, :now, fence, 0, :term, created, args, options, key, key_window, key_span, tags,
  meta, source, origin, schedule, tick, error, attempts, closed
from drumline_history
where id = :id

-- name: drop_ended
-- Take a job out of history.
delete from drumline_history
where id = :id

-- name: lock_waiting
-- A waiting job.
select queue, task, state
from drumline_job
where id = :id
  and state in ('d', 'r', 'b')

-- name: move_due
-- Move a waiting job to another due time.
update drumline_job
set due = :due,
    state = :state
where id = :id

-- name: reseal_job
-- Write the arguments of an unfinished job in another form, if they stand as they were read, or so already.
update drumline_job
set args = :after
where id = :id
  and args in (:before, :after)
returning queue

-- name: reseal_ended_job
-- The same for an ended one.
update drumline_history
set args = :after
where id = :id
  and args in (:before, :after)
returning id
