-- name: finish
-- Close the claims whose fence still holds, and answer with their places, by how they stand; the rest are stale.
with present as materialized (
  select {schema}.now_ms() as now
),
-- What only few outcomes tell.
more as materialized (
  select *
  from json_to_recordset(%(more)s::json) as m (
    place integer, failed boolean, start_at bigint, start_in bigint, error text, is_repr boolean, releases integer)
),
-- One by one by the primary key, whatever the planner believes of the table; in their order, and locked.
held as materialized (
  select o.place, o.kind, o.line, o.keep, o.keep_cancelled, o.wait, o.run, o.result, claim.place_of, claim.cancelling
  from (
    select
      unnest(%(places)s::integer[]) as place,
      unnest(%(ids)s::uuid[]) as id,
      unnest(%(fences)s::bigint[]) as fence,
      unnest(%(kinds)s::"char"[]) as kind,
      unnest(%(lines)s::text[]) as line,
      unnest(%(keeps)s::bigint[]) as keep,
      unnest(%(keeps_cancelled)s::bigint[]) as keep_cancelled,
      unnest(%(waits)s::smallint[]) as wait,
      unnest(%(runs)s::smallint[]) as run,
      unnest(%(results)s::text[]) as result
  ) as o
  cross join lateral (
    select ctid as place_of, cancelling
    from {schema}.job
    where job.id = o.id
      and job.fence = o.fence
      and job.state = 'x'
    limit 1
    for update
  ) as claim
),
-- Somebody asks to cancel some: these do not run again.
back as materialized (
  select
    o.*, m.error, coalesce(m.releases, 0) as releases, now,
    greatest(coalesce(m.start_at, now + coalesce(m.start_in, 0)), now) as due,
    o.kind = 'l' and m.start_at is null and m.start_in is null as is_given_back
  from held as o
  left join more as m using (place)
  cross join present
  where o.kind in ('r', 'l')
    and not o.cancelling
),
waiting as (
  update {schema}.job
  -- A released job keeps its place.
  set state = (case when case when o.is_given_back then job.due else o.due end > now then 'd' else 'r' end)::"char",
      due = case when o.is_given_back then job.due else o.due end,
      attempt = attempt - (o.kind = 'l')::integer,
      releases = o.releases,
      replica = null,
      claimed = null,
      lease = null,
      token = null,
      error = coalesce(o.error, job.error),
      attempts = attempts || o.line,
      closed = closed + 1
  from back as o
  where job.ctid = o.place_of
  returning job.id, job.queue, job.task, job.state, o.kind, o.place, o.wait, o.run
),
ended as (
  delete from {schema}.job
  using held as o
  where job.ctid = o.place_of
    and (o.kind in ('o', 'f', 'c') or o.cancelling)
  returning
    job.id, job.queue, job.task, (case when o.kind in ('o', 'f') then o.kind else 'c' end)::"char" as state, o.place,
    o.wait, o.run, job.key
),
recorded as (
  insert into {schema}.history (
    id, queue, task, state, due, fence, attempt, created, finished, expires, args, options, key, key_window, key_span,
    tags, meta, source, origin, schedule, tick, progress, user_error, error, attempts, closed, result, result_is_repr)
  select
    id, queue, task, case when o.kind in ('o', 'f') then o.kind else 'c' end, due, fence, attempt, created, now,
    now + case when o.kind in ('o', 'f') then o.keep else o.keep_cancelled end, args, options, key, key_window,
    key_span, tags, meta, source, origin, schedule, tick, progress, user_error, coalesce(m.error, job.error),
    attempts || line, closed + 1, result, coalesce(m.is_repr, false)
  from held as o
  join {schema}.job on job.ctid = o.place_of
  left join more as m using (place)
  cross join present
  where o.kind in ('o', 'f', 'c')
     or o.cancelling
),
freed as (
  delete from {schema}.key
  using ended
  where ended.key is not null
    and key.task = ended.task
    and key.key = ended.key
    and key.job = ended.id
    and key.key_window <> 't'
),
unwatched as (
  delete from {schema}.watch
  using ended
  where watch.job = ended.id
    -- Mostly nobody waits for any: then none is looked for.
    and exists (select from {schema}.watch)
  returning watch.job
),
closed as materialized (
  select id, queue, task, state, kind, place, wait, run
  from waiting
  union all
  select id, queue, task, state, state, place, wait, run
  from ended
),
failed as materialized (
  select queue, task, place, m.failed, error
  from more as m
  join closed using (place)
  where kind <> 'l'
),
counted as (
  insert into {schema}.flow (
    minute, queue, task, running, ready, delayed, done, dead, cancelled, attempts, ran_done, ran_failed, ran_dead,
    ran_cancelled, last_error, waits, runs)
  select
    min(now) / 60000 * 60000, queue, task,
    - count(*),
    count(*) filter (where state = 'r'),
    count(*) filter (where state = 'd'),
    count(*) filter (where state = 'o'),
    count(*) filter (where state = 'f'),
    count(*) filter (where state = 'c'),
    -- A released attempt never happened.
    count(*) filter (where kind <> 'l'),
    count(*) filter (where kind = 'o'),
    (select count(*) from failed where failed.queue = closed.queue and failed.task = closed.task and failed.failed),
    count(*) filter (where kind = 'f'),
    count(*) filter (where kind = 'c'),
    (
      select error
      from failed
      where failed.queue = closed.queue
        and failed.task = closed.task
        and error is not null
      order by place desc
      limit 1
    ),
    array_agg(wait) filter (where kind <> 'l'),
    array_agg(run) filter (where kind <> 'l')
  from closed, present
  group by queue, task
),
-- Only if the user asks: what was finished last may run again after a crash of the server.
quiet as materialized (
  select set_config('synchronous_commit', 'off', true)
  where %(is_quick)s::boolean
)
select closed.kind::text, unwatched.job is not null, array_agg(closed.place)
from closed
left join unwatched on unwatched.job = closed.id
left join quiet on true
group by 1, 2

-- name: find_repeated
-- Of outcomes that were not applied: whether the attempt stands in the job's history, or the claim is held all the same.
select o.place, coalesce(strpos(coalesce(job.attempts, history.attempts), o.line) > 0, false)
from json_to_recordset(%(outcomes)s::json) as o (place integer, id uuid, fence bigint, line text)
left join {schema}.job on job.id = o.id
left join {schema}.history on history.id = o.id
where strpos(coalesce(job.attempts, history.attempts), o.line) > 0
   or (job.fence = o.fence and job.state = 'x')
order by o.place
