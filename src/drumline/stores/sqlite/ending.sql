-- name: end_job
-- Move a job to history, as ended; the line closes its last attempt, if it had one.
insert into drumline_history (
  id, queue, task, state, due, fence, attempt, created, finished, expires, args, options, key, key_window, key_span,
  tags, meta, source, origin, schedule, tick, progress, user_error, error, attempts, closed, result, result_is_repr)
select
  id, queue, task, :state, due, fence, attempt, created, :now, :expires, args, options, key, key_window, key_span,
  tags, meta, source, origin, schedule, tick, progress, user_error, coalesce(:error, error), attempts || :line,
  closed + (:line <> ''), :result, :result_is_repr
from drumline_job
where id = :id

-- name: drop_job
-- Take the job out of the unfinished ones.
delete from drumline_job
where id = :id

-- name: free_key
-- The key of an ended job is free again, unless it is held for a time.
delete from drumline_key
where task = :task
  and key = :key
  and job = :id
  and window <> 't'

-- name: tell_tick
-- The tick's ledger row learns what became of its job.
update drumline_tick
set outcome = :outcome,
    run_time = :run_time
where job = :id

-- name: let_go
-- The jobs that waited for this one wait no longer.
update drumline_job
set state = case when due > :now then 'd' else 'r' end,
    waits_for = null
where state = 'b'
  and waits_for = :id
returning queue, task, state

-- name: find_waiting
-- A job that waits, as far as its end has to know it.
select id, queue, task, state, options, key, schedule
from drumline_job
where id = :id
  and state in ('d', 'r', 'b')
