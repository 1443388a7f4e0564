-- name: find_audit
-- What came of an action, if it was done already.
select answers
from {schema}.audit
where id = %(id)s

-- name: add_audit
-- Who did what.
insert into {schema}.audit (id, at, by, action, targets, answers, part_of)
values (%(id)s, %(now)s, %(by)s, %(action)s, %(targets)s, %(answers)s, %(part_of)s)

-- name: add_pause
-- Pause a queue.
insert into {schema}.pause (queue, by)
values (%(queue)s, %(by)s)
on conflict do nothing
returning queue

-- name: drop_pause
-- Resume a queue.
delete from {schema}.pause
where queue = %(queue)s
returning queue

-- name: find_pauses
-- The queues that are paused.
select queue, by
from {schema}.pause
order by queue

-- name: find_paused_schedules
-- The schedules that are paused.
select name, paused_by
from {schema}.schedule
where paused is not null
order by name

-- name: pause_schedule
-- Pause a schedule.
update {schema}.schedule
set paused = %(now)s,
    paused_by = %(by)s
where name = %(name)s

-- name: resume_schedule
-- Let a schedule go on, from now.
update {schema}.schedule
set paused = null,
    paused_by = null,
    begun = %(now)s,
    last_tick = %(now)s
where name = %(name)s

-- name: find_unfinished_job
-- An unfinished job, as far as a command has to know it.
select options
from {schema}.job
where id = %(id)s::uuid

-- name: ask_to_stop
-- Ask for a running job to be cancelled.
update {schema}.job
set cancelling = true
where id = %(id)s::uuid
  and state = 'x'
returning replica

-- name: find_ended_job
-- An ended job, as far as a command has to know it; nobody else changes it meanwhile.
select queue, task, state::text, options, key, key_window::text, key_span, created
from {schema}.history
where id = %(id)s::uuid
for update

-- name: revive
-- Make an ended job ready again; its fence goes on.
with ended as (
  delete from {schema}.history
  where id = %(id)s::uuid
  returning *
)
insert into {schema}.job (
  id, queue, task, state, rank, due, fence, attempt, term, created, args, options, key, key_window, key_span, tags,
  meta, source, origin, schedule, tick, error, attempts, closed)
select
  id, queue, task, 'r', %(rank)s, %(now)s, fence, 0, %(term)s, created, args, options, key, key_window, key_span, tags,
  meta, source, origin, schedule, tick, error, attempts, closed
from ended

-- name: lock_waiting
-- A waiting job; nobody takes it meanwhile.
select queue, task, state::text
from {schema}.job
where id = %(id)s::uuid
  and state in ('d', 'r', 'b')
for update

-- name: move_due
-- Move a waiting job to another due time.
update {schema}.job
set due = %(due)s,
    state = %(state)s
where id = %(id)s::uuid

-- name: reseal_job
-- Write the arguments of an unfinished job in another form, if they stand as they were read, or so already.
update {schema}.job
set args = %(after)s
where id = %(id)s::uuid
  and args in (%(before)s, %(after)s)
returning queue

-- name: reseal_ended_job
-- The same for an ended one.
update {schema}.history
set args = %(after)s
where id = %(id)s::uuid
  and args in (%(before)s, %(after)s)
returning id
