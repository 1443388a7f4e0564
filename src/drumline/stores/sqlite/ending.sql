-- name: end_jobs
-- Move jobs to history that end alike: by place in the table the line of the attempt, result and error of each.
insert into drumline_history (
  id, queue, task, state, due, fence, attempt, created, finished, expires, args, options, key, key_window, key_span,
  tags, meta, source, origin, schedule, tick, progress, user_error, error, attempts, closed, result, result_is_repr)
select
  job.id, queue, task, :state, due, fence, attempt, created, :now, :expires, args, options, job.key, key_window, key_span,
  tags, meta, source, origin, schedule, tick, progress, user_error, coalesce(json_extract(ended.value, '$[2]'), error),
  attempts || json_extract(ended.value, '$[0]'), closed + :closed, cast(json_extract(ended.value, '$[1]') as blob),
  :is_repr
from json_each(:rows) as ended
cross join drumline_job as job on job.rowid = cast(ended.key as integer)

-- name: drop_jobs
-- Take the jobs out of the unfinished ones.
delete from drumline_job
where rowid in (select value from json_each(:places))

-- name: keep_exactly
-- What an ended job leaves, byte by byte.
update drumline_history
set error = coalesce(:error, error),
    result = :result
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
select rowid, queue, task, state, key, schedule
from drumline_job
where id = :id
  and state in ('d', 'r', 'b')
