-- name: find_old_jobs
-- Ended jobs that have outlived their retention.
select id, queue, task, state, created, tags
from drumline_history
where expires <= :now
order by expires
limit :limit

-- name: find_old_job
-- An ended job, in the same shape.
select id, queue, task, state, created, tags
from drumline_history
where id = :id

-- name: forget_job
-- Forget an ended job.
delete from drumline_history
where id = :id

-- name: forget_lines
-- Forget the log of a job.
delete from drumline_log
where job = :id

-- name: forget_tag
-- Find the job no more by its tag.
delete from drumline_tag
where tag = :tag
  and created = :created
  and job = :job
