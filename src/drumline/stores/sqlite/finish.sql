-- name: find_held
-- Those of the jobs that are running, with the fence of their claim and their place in the table.
select job.id, job.fence, job.cancelling, job.rowid
from json_each(:ids) as wanted
cross join drumline_job as job on job.id = wanted.value
where job.state = 'x'

-- name: wait_again
-- Close the attempt of a job and let it wait for its due time.
update drumline_job
set state = :state,
    due = :due,
    attempt = attempt - :given_back,
    releases = :releases,
    replica = null,
    claimed = null,
    lease = null,
    error = coalesce(:error, error),
    attempts = attempts || :line,
    closed = closed + 1
where id = :id

-- name: has_attempt
-- Whether the attempt stands in the job's history: then the outcome is a repeated one.
select 1
from drumline_job
where id = :id
  and instr(attempts, :line)
union all
select 1
from drumline_history
where id = :id
  and instr(attempts, :line)
