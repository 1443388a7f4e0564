-- name: walk_all
-- All jobs, newest first, behind a place. Each part has an end of its own: else the planner sorts both tables. Running
-- jobs are few enough to be sorted; the sum keeps the planner from an index that they are not in.
select created, id::text
from (
  (
    select created, id
    from {schema}.job
    where lease is null
      and (created, id) < (%(created)s, %(id)s::uuid)
      and created >= %(from)s
    order by created desc, id desc
    limit %(limit)s
  )
  union all
  (
    select created, id
    from {schema}.job
    where lease is not null
      and (created, id) < (%(created)s, %(id)s::uuid)
      and created >= %(from)s
    order by created + 0 desc, id desc
    limit %(limit)s
  )
  union all
  (
    select created, id
    from {schema}.history
    where (created, id) < (%(created)s, %(id)s::uuid)
      and created >= %(from)s
    order by created desc, id desc
    limit %(limit)s
  )
) as passed
order by created desc, passed.id desc
limit %(limit)s

-- name: walk_unfinished
-- Unfinished jobs.
select created, id::text
from (
  (
    select created, id
    from {schema}.job
    where lease is null
      and (created, id) < (%(created)s, %(id)s::uuid)
      and created >= %(from)s
    order by created desc, id desc
    limit %(limit)s
  )
  union all
  (
    select created, id
    from {schema}.job
    where lease is not null
      and (created, id) < (%(created)s, %(id)s::uuid)
      and created >= %(from)s
    order by created + 0 desc, id desc
    limit %(limit)s
  )
) as passed
order by created desc, passed.id desc
limit %(limit)s

-- name: walk_running
-- Running jobs: few enough to be sorted. The sum keeps the planner from walking along all unfinished ones.
select created, id::text
from {schema}.job
where lease is not null
  and (created, id) < (%(created)s, %(id)s::uuid)
  and created >= %(from)s
order by created + 0 desc, job.id desc
limit %(limit)s

-- name: walk_ended
-- Ended jobs.
select created, id::text
from {schema}.history as job
where (created, id) < (%(created)s, %(id)s::uuid)
  and created >= %(from)s
order by created desc, job.id desc
limit %(limit)s

-- name: walk_dead
-- Dead jobs.
select created, id::text
from {schema}.history as job
where state = 'f'
  and (created, id) < (%(created)s, %(id)s::uuid)
  and created >= %(from)s
order by created desc, job.id desc
limit %(limit)s

-- name: walk_cancelled
-- Cancelled jobs.
select created, id::text
from {schema}.history as job
where state = 'c'
  and (created, id) < (%(created)s, %(id)s::uuid)
  and created >= %(from)s
order by created desc, job.id desc
limit %(limit)s

-- name: walk_tag
-- Jobs with a tag.
select created, job::text
from {schema}.tag
where tag = %(tag)s
  and (created, job) < (%(created)s, %(id)s::uuid)
  and created >= %(from)s
order by created desc, tag.job desc
limit %(limit)s

-- name: walk_schedule
-- Jobs of a schedule.
select created, id::text
from (
  (
    select created, id
    from {schema}.job
    where schedule = %(schedule)s
      and (created, id) < (%(created)s, %(id)s::uuid)
      and created >= %(from)s
    order by created desc, id desc
    limit %(limit)s
  )
  union all
  (
    select created, id
    from {schema}.history
    where schedule = %(schedule)s
      and (created, id) < (%(created)s, %(id)s::uuid)
      and created >= %(from)s
    order by created desc, id desc
    limit %(limit)s
  )
) as passed
order by created desc, passed.id desc
limit %(limit)s

-- name: walk_key
-- Jobs with a unique key, of any task.
select created, id::text
from (
  (
    select created, id
    from {schema}.job
    where key = %(key)s
      and (created, id) < (%(created)s, %(id)s::uuid)
      and created >= %(from)s
    order by created desc, id desc
    limit %(limit)s
  )
  union all
  (
    select created, id
    from {schema}.history
    where key = %(key)s
      and (created, id) < (%(created)s, %(id)s::uuid)
      and created >= %(from)s
    order by created desc, id desc
    limit %(limit)s
  )
) as passed
order by created desc, passed.id desc
limit %(limit)s

-- name: pick_unfinished
-- Those of the jobs that are unfinished and as the filter asks; and the present.
select
  job.id::text, task, queue, state::text, attempt, fence, args, options, created, due, claimed, lease, replica, null,
  null, key, tags, meta, source, origin, schedule, tick, waits_for::text, progress, attempts, null, false, user_error,
  cancelling,
  now
from (select {schema}.now_ms() as now) as present
cross join {schema}.job
where id = any (array(select value::uuid from json_array_elements_text(%(ids)s::json)))
  and (%(task)s::text is null or task = %(task)s)
  and (%(queue)s::text is null or queue = %(queue)s)
  and (%(key)s::text is null or key = %(key)s)
  and (%(schedule)s::text is null or schedule = %(schedule)s)
  and (%(source)s::text is null or source = %(source)s)
  and (%(origin)s::text is null or origin = %(origin)s)
  and (%(meta)s::text is null or not exists (
      select
      from jsonb_each(%(meta)s::text::jsonb) as asked
      where asked.value::text is distinct from (meta::jsonb -> asked.key)::text))
  and (%(error)s::text is null or strpos(error, %(error)s) > 0)
  and (%(tag)s::text is null or %(tag)s in (select json_array_elements_text(tags::json)))
  and created >= %(from)s
  and created < %(to)s
  and (%(states)s::text is null or case
      when state = 'x' and cancelling then 'cancelling'
      when state = 'x' then 'running'
      when state = 'b' or due > now then 'delayed'
      else 'ready'
    end in (select json_array_elements_text(%(states)s::text::json)))

-- name: pick_ended
-- Those of the jobs that have ended and are as the filter asks.
select
  job.id::text, task, queue, state::text, attempt, fence, args, options, created, due, null, null, null, finished,
  expires, key, tags, meta, source, origin, schedule, tick, null, progress, attempts, result, result_is_repr,
  user_error, false,
  0
from {schema}.history as job
where id = any (array(select value::uuid from json_array_elements_text(%(ids)s::json)))
  and (%(task)s::text is null or task = %(task)s)
  and (%(queue)s::text is null or queue = %(queue)s)
  and (%(key)s::text is null or key = %(key)s)
  and (%(schedule)s::text is null or schedule = %(schedule)s)
  and (%(source)s::text is null or source = %(source)s)
  and (%(origin)s::text is null or origin = %(origin)s)
  and (%(meta)s::text is null or not exists (
      select
      from jsonb_each(%(meta)s::text::jsonb) as asked
      where asked.value::text is distinct from (meta::jsonb -> asked.key)::text))
  and (%(error)s::text is null or strpos(error, %(error)s) > 0)
  and (%(tag)s::text is null or %(tag)s in (select json_array_elements_text(tags::json)))
  and created >= %(from)s
  and created < %(to)s
  and (%(states)s::text is null or case state
      when 'o' then 'done'
      when 'f' then 'dead'
      else 'cancelled'
    end in (select json_array_elements_text(%(states)s::text::json)))
