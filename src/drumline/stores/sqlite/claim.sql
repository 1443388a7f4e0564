-- name: find_token
-- What the call with this token gave.
select refs
from drumline_token
where token = :token
  and at > :oldest

-- name: drop_tokens
-- Forget what nobody will repeat any more.
delete from drumline_token
where at <= :oldest

-- name: keep_token
-- Remember what this call gives.
insert or replace into drumline_token (token, at, refs)
values (:token, :now, :refs)

-- name: promote
-- Make due jobs ready, whatever their queue.
update drumline_job
set state = 'r'
where id in (
  select id
  from drumline_job
  where state = 'd'
    and due <= :now
  order by due
  limit :limit)
returning queue, task

-- name: demote
-- Make ready jobs wait again that are not yet due: the clock has gone back.
update drumline_job
set state = 'd'
where state = 'r'
  and due > :now
returning queue, task

-- name: find_due
-- Whether a delayed job is due.
select 1
from drumline_job
where state = 'd'
  and due <= :now
limit 1

-- name: next_due
-- When the next delayed job is due.
select min(due)
from drumline_job
where state = 'd'

-- name: paused_queues
-- Queues that give nothing.
select queue
from drumline_pause

-- name: lanes_of
-- The tasks of which these queues hold ready jobs, by one look into the index for each.
with recursive lane (queue, task) as (
  select value, (select min(task) from drumline_job where state = 'r' and queue = value)
  from json_each(:queues)
  union all
  select queue, (
    select min(task)
    from drumline_job
    where state = 'r'
      and drumline_job.queue = lane.queue
      and drumline_job.task > lane.task)
  from lane
  where task is not null)
select queue, task
from lane
where task is not null

-- name: queues_ready
-- The queues that hold ready jobs, by one look into the index for each.
with recursive ready (queue) as (
  select min(queue)
  from drumline_job
  where state = 'r'
  union all
  select (
    select min(queue)
    from drumline_job
    where state = 'r'
      and drumline_job.queue > ready.queue)
  from ready
  where queue is not null)
select queue
from ready
where queue is not null

-- name: read_lane
-- The next ready jobs of one lane, in the order in which they are taken.
select rank, due, id, rowid
from drumline_job
where state = 'r'
  and queue = :queue
  and task = :task
  and (rank, due, id) > (:rank, :after, :id)
  and due <= :now
order by rank, due, id
limit :limit

-- name: take
-- Start a claim on each of these jobs, by their places in the table.
update drumline_job
set state = 'x',
    fence = max(fence + 1, :now * 1000),
    attempt = attempt + 1,
    replica = :replica,
    claimed = :now,
    lease = :now + term
where rowid in (select value from json_each(:places))

-- name: find_taken
-- The claims on these jobs, then what only the store needs; apart from the update, whose own answer takes longer.
select
  id, fence, task, queue, attempt, args, options, replica, created, due, claimed, lease, tags, meta, source, schedule,
  tick, key, cancelling, releases, key_window, closed
from drumline_job
where rowid in (select value from json_each(:places))

-- name: find_claims
-- Those of the jobs that are running.
select
  job.id, fence, task, queue, attempt, args, options, replica, created, due, claimed, lease, tags, meta, source,
  schedule, tick, job.key, cancelling, releases
from json_each(:ids) as wanted
cross join drumline_job as job on job.id = wanted.value
where state = 'x'

-- name: free_started_key
-- A job that holds its key until it starts has started.
delete from drumline_key
where task = :task
  and key = :key
  and job = :id
  and window = 'p'

-- name: find_attempts
-- The lines of a job's closed attempts.
select attempts
from drumline_job
where id = :id

-- name: keep_attempts
-- Keep only the newest lines.
update drumline_job
set attempts = :attempts,
    closed = :closed
where id = :id
