-- name: walk_all
-- All jobs, newest first, behind a place.
select created, id
from drumline_job
where (created, id) < (:created, :id)
  and created >= :from
union all
select created, id
from drumline_history
where (created, id) < (:created, :id)
  and created >= :from
order by created desc, id desc
limit :limit

-- name: walk_unfinished
-- Unfinished jobs.
select created, id
from drumline_job
where (created, id) < (:created, :id)
  and created >= :from
order by created desc, id desc
limit :limit

-- name: walk_running
-- Running jobs: few enough to be sorted. The signs keep the planner from walking along all unfinished ones.
select created, id
from drumline_job
where state = 'x'
  and (+created, +id) < (:created, :id)
  and +created >= :from
order by +created desc, +id desc
limit :limit

-- name: walk_ended
-- Ended jobs.
select created, id
from drumline_history
where (created, id) < (:created, :id)
  and created >= :from
order by created desc, id desc
limit :limit

-- name: walk_dead
-- Dead jobs.
select created, id
from drumline_history
where state = 'f'
  and (created, id) < (:created, :id)
  and created >= :from
order by created desc, id desc
limit :limit

-- name: walk_cancelled
-- Cancelled jobs.
select created, id
from drumline_history
where state = 'c'
  and (created, id) < (:created, :id)
  and created >= :from
order by created desc, id desc
limit :limit

-- name: walk_tag
-- Jobs with a tag.
select created, job
from drumline_tag
where tag = :tag
  and (created, job) < (:created, :id)
  and created >= :from
order by created desc, job desc
limit :limit

-- name: walk_schedule
-- Jobs of a schedule.
select created, id
from drumline_job
where schedule = :schedule
  and (created, id) < (:created, :id)
  and created >= :from
union all
select created, id
from drumline_history
where schedule = :schedule
  and (created, id) < (:created, :id)
  and created >= :from
order by created desc, id desc
limit :limit

-- name: walk_key
-- Jobs with a unique key, of any task.
select created, id
from drumline_job
where key = :key
  and (created, id) < (:created, :id)
  and created >= :from
union all
select created, id
from drumline_history
where key = :key
  and (created, id) < (:created, :id)
  and created >= :from
order by created desc, id desc
limit :limit

-- name: pick_unfinished
-- Those of the jobs that are unfinished and as the filter asks.
select
  job.id, task, queue, state, attempt, fence, args, options, created, due, claimed, lease, replica, null, null, job.key,
  tags, meta, source, origin, schedule, tick, waits_for, progress, attempts, null, 0, user_error, cancelling,
  :now
from json_each(:ids) as wanted
cross join drumline_job as job on job.id = wanted.value
where (:task is null or task = :task)
  and (:queue is null or queue = :queue)
  and (:key is null or job.key = :key)
  and (:schedule is null or schedule = :schedule)
  and (:source is null or source = :source)
  and (:origin is null or origin = :origin)
  and (:meta is null or not exists (
      select 1
      from json_each(:meta) as asked
      where not exists (
        select 1
        from json_each(cast(meta as text)) as kept
        where (kept.key, kept.type, kept.value) is (asked.key, asked.type, asked.value))))
  and (:error is null or instr(coalesce(error, ''), :error))
  and (:tag is null or exists (select 1 from json_each(tags) where value = :tag))
  and created >= :from
  and created < :to
  and (:states is null or case
      when state = 'x' and cancelling then 'cancelling'
      when state = 'x' then 'running'
      when state = 'b' or due > :now then 'delayed'
      else 'ready'
    end in (select value from json_each(:states)))

-- name: pick_ended
-- Those of the jobs that have ended and are as the filter asks.
select
  job.id, task, queue, state, attempt, fence, args, options, created, due, null, null, null, finished, expires, job.key,
  tags, meta, source, origin, schedule, tick, null, progress, attempts, result, result_is_repr, user_error, 0, :now
from json_each(:ids) as wanted
cross join drumline_history as job on job.id = wanted.value
where (:task is null or task = :task)
  and (:queue is null or queue = :queue)
  and (:key is null or job.key = :key)
  and (:schedule is null or schedule = :schedule)
  and (:source is null or source = :source)
  and (:origin is null or origin = :origin)
  and (:meta is null or not exists (
      select 1
      from json_each(:meta) as asked
      where not exists (
        select 1
        from json_each(cast(meta as text)) as kept
        where (kept.key, kept.type, kept.value) is (asked.key, asked.type, asked.value))))
  and (:error is null or instr(coalesce(error, ''), :error))
  and (:tag is null or exists (select 1 from json_each(tags) where value = :tag))
  and created >= :from
  and created < :to
  and (:states is null or case state
      when 'o' then 'done'
      when 'f' then 'dead'
      else 'cancelled'
    end in (select value from json_each(:states)))
