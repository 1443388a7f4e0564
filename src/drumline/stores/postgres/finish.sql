-- name: finish
-- Close the claims whose fence still holds, and answer with their places and how they stand; the rest are stale.
with present as materialized (
  select {schema}.now_ms() as now
),
outcome as materialized (
  select
    o.*, now,
    greatest(coalesce(o.start_at, now + coalesce(o.start_in, 0)), now) as due,
    o.kind = 'l' and o.start_at is null and o.start_in is null as is_given_back
  from present
  cross join json_to_recordset(%(outcomes)s::json) as o (
    place integer, id uuid, fence bigint, kind "char", line text, keep bigint, keep_cancelled bigint, wait smallint,
    run smallint, failed boolean, start_at bigint, start_in bigint, error text, result text, is_repr boolean,
    releases integer)
),
-- One by one by the primary key, whatever the planner believes of the table; in their order, and locked.
held as materialized (
  select o.*, claim.place_of, claim.cancelling
  from outcome as o
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
waiting as (
  update {schema}.job
  -- A released job keeps its place.
  set state = (case when case when o.is_given_back then job.due else o.due end > now then 'd' else 'r' end)::"char",
      due = case when o.is_given_back then job.due else o.due end,
      attempt = attempt - (o.kind = 'l')::integer,
      releases = coalesce(o.releases, 0),
      replica = null,
      claimed = null,
      lease = null,
      token = null,
      error = coalesce(o.error, job.error),
      attempts = attempts || o.line,
      closed = closed + 1
  from held as o
  where job.ctid = o.place_of
    and o.kind in ('r', 'l')
    -- Somebody asks to cancel it: it does not run again.
    and not o.cancelling
  returning job.id, job.queue, job.task, job.state, o.kind, o.place, o.failed, o.error, o.wait, o.run
),
ended as (
  delete from {schema}.job
  using held as o
  where job.ctid = o.place_of
    and (o.kind in ('o', 'f', 'c') or o.cancelling)
  returning
    job.*, o.place, o.line, o.failed, o.error as died_of, o.wait, o.run, o.result, o.is_repr, o.now,
    (case when o.kind in ('o', 'f') then o.kind else 'c' end)::"char" as end_state,
    case when o.kind in ('o', 'f') then o.keep else o.keep_cancelled end as kept
),
recorded as (
  insert into {schema}.history (
    id, queue, task, state, due, fence, attempt, created, finished, expires, args, options, key, key_window, key_span,
    tags, meta, source, origin, schedule, tick, progress, user_error, error, attempts, closed, result, result_is_repr)
  select
    id, queue, task, end_state, due, fence, attempt, created, now, now + kept, args, options, key, key_window,
    key_span, tags, meta, source, origin, schedule, tick, progress, user_error, coalesce(died_of, error),
    attempts || line, closed + 1, result, coalesce(is_repr, false)
  from ended
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
  returning watch.job
),
closed as materialized (
  select id, queue, task, state, kind, place, failed, error, wait, run
  from waiting
  union all
  select id, queue, task, end_state, end_state, place, failed, died_of, wait, run
  from ended
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
    count(*) filter (where kind <> 'l' and failed),
    count(*) filter (where kind = 'f'),
    count(*) filter (where kind = 'c'),
    (array_agg(error order by place desc) filter (where kind <> 'l' and error is not null))[1],
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
select closed.place, closed.kind::text, unwatched.job is not null
from closed
left join unwatched on unwatched.job = closed.id
left join quiet on true

-- name: find_repeated
-- Of outcomes that were not applied: whether the attempt stands in the job's history, or the claim is held all the same.
select o.place, coalesce(strpos(coalesce(job.attempts, history.attempts), o.line) > 0, false)
from json_to_recordset(%(outcomes)s::json) as o (place integer, id uuid, fence bigint, line text)
left join {schema}.job on job.id = o.id
left join {schema}.history on history.id = o.id
where strpos(coalesce(job.attempts, history.attempts), o.line) > 0
   or (job.fence = o.fence and job.state = 'x')
order by o.place
