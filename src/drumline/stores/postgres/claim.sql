-- name: claim
-- Take the first ready jobs of one queue, or of all that are not private, lane by lane. While delayed jobs are due that
-- were not promoted, nothing is taken, unless it is asked for all the same.
--
-- What is asked for stands in a row of its own. A plan for these very values would look cheaper to the planner than one
-- for any, and it would plan anew at each call, which takes twice as long as the claim of a job.
with recursive present as materialized (
  select {schema}.now_ms() as now
),
asked as materialized (
  select
    %(queue)s::text as queue,
    -- From where to where in the index; no name holds a character as high as that.
    coalesce(%(queue)s::text, '') as first, coalesce(%(queue)s::text, chr(127)) as last,
    %(private)s::text as private, %(but)s::text[] as but, %(tasks)s::text[] as tasks,
    %(limit)s::bigint as most, %(regardless)s::boolean as is_regardless, %(bands)s::json as bands
),
-- The first one by the index, whatever the planner believes of their number.
delayed as materialized (
  select due
  from {schema}.job
  where state = 'd'
  order by due
  limit 1
),
-- Promotion comes first, and a statement does not see what it promotes itself.
overdue as materialized (
  select coalesce((select due from delayed) <= now, false) as is_so
  from present
),
-- The lanes that hold ready jobs, by one look into the index for each; none, where bands are given.
lane (queue, task) as (
  (
    select queue, task
    from {schema}.job
    where state = 'r'
      and (queue, task) > ((select first from asked), '')
      and queue <= (select last from asked)
      and (select bands from asked) is null
      and ((select is_regardless from asked) or not (select is_so from overdue))
    order by queue, task
    limit 1
  )
  union all
  select following.queue, following.task
  from lane
  cross join lateral (
    select queue, task
    from {schema}.job
    where state = 'r'
      and (queue, task) > (lane.queue, lane.task)
      and queue <= (select last from asked)
    order by queue, task
    limit 1
  ) as following
),
-- A band is a stretch of a lane: behind (rank, due, id), up to the rank top.
band as materialized (
  select *, row_number() over () as number
  from (
    select queue, task, -1000 as rank, 0 as due, '00000000-0000-0000-0000-000000000000'::uuid as id, 1000 as top
    from lane
    where task = any ((select tasks from asked)::text[])
      and ((select queue from asked) is not null or queue not like (select private from asked))
    union all
    select queue, task, rank, due, id, top
    from json_to_recordset((select bands from asked)) as given (
      queue text, task text, rank integer, due bigint, id uuid, top integer)
    where (select is_regardless from asked) or not (select is_so from overdue)
  ) as stretch
  where queue <> all (array(select queue from {schema}.pause))
    and queue <> all ((select but from asked)::text[])
),
-- Of one lane all that is wanted; of several a part each, for what is locked but not taken is withheld from others.
chunk as materialized (
  select
    case when lanes <= 1 then most else greatest(8, 2 * most / lanes) end as size,
    stretches > 1 as are_several
  from asked, (select count(distinct (queue, task)) as lanes, count(*) as stretches from band) as open_lane
),
head as materialized (
  select band.number, head.id, head.rank, head.due
  from band
  cross join lateral (
    select id, rank, due
    from {schema}.job
    where job.state = 'r'
      and job.queue = band.queue
      and job.task = band.task
      and (job.rank, job.due, job.id) > (band.rank, band.due, band.id)
      and job.rank <= band.top
      and job.due <= (select now from present)
    order by rank, due, id
    limit (select size from chunk)
    for update skip locked
  ) as head
),
-- Behind the last job of a part, its band may hold some that come before those of other bands.
edge as materialized (
  select rank, due, id
  from (
    select rank, due, id, row_number() over (partition by number order by rank, due, id) as place
    from head
    where (select are_several from chunk)
  ) as placed
  where place = (select size from chunk)
  order by rank, due, id
  limit 1
),
-- The jobs of one band are taken as they come, and not sorted.
chosen as materialized (
  select number, id
  from head
  where not (select are_several from chunk)
  union all
  (
    select number, id
    from head
    where (select are_several from chunk)
      and (not exists (select from edge) or (rank, due, id) <= (select rank, due, id from edge))
    order by rank, due, id
    limit (select most from asked)
  )
),
-- Once for each call: of two calls with one token, the second takes nothing.
fresh as (
  insert into {schema}.token (token, call, at)
  select %(token)s, %(call)s, now
  from present
  where exists (select from chosen)
  on conflict (token) do update
  set call = excluded.call,
      at = excluded.at
  where token.call = excluded.call
     or token.at <= excluded.at - 60000
  returning token
),
claimed as (
  update {schema}.job
  set state = 'x',
      fence = greatest(fence + 1, now * 1000),
      attempt = attempt + 1,
      replica = %(replica)s,
      token = fresh.token,
      claimed = now,
      lease = now + term,
      -- Of many closed attempts, only the newest are carried on.
      attempts = case
        when closed < 200 then attempts
        else array_to_string((string_to_array(attempts, E'\n'))[closed - 99:], E'\n')
      end,
      closed = case when closed < 200 then closed else 100 end
  from fresh, present
  -- By an array, so that the primary key is used whatever the planner believes of the table. And nothing about the state:
  -- those chosen are locked, and an index of lanes that is taken for empty would be read from end to end.
  where job.id = any (array(select id from chosen))
  returning
    job.id, fence, task, queue, attempt, args, options, replica, created, due, claimed, lease, tags, meta, source,
    schedule, tick, key, cancelling, releases, rank, key_window
),
freed as (
  delete from {schema}.key
  using claimed
  where claimed.key_window = 'p'
    and key.task = claimed.task
    and key.key = claimed.key
    and key.job = claimed.id
    and key.key_window = 'p'
),
counted as (
  insert into {schema}.flow (minute, queue, task, ready, running)
  select now / 60000 * 60000, queue, task, - taken, taken
  from (select number, count(*) as taken from chosen group by number) as part
  join band using (number)
  cross join fresh
  cross join present
),
-- A claim that is lost in a crash of the server is only given out again: nobody has to wait for the disk.
quiet as materialized (
  select set_config('synchronous_commit', 'off', true)
)
-- The first row tells of the look; the others are the jobs, in no order, for to sort them here takes longer. The first
-- waits until all are taken: an answer that comes bit by bit wakes its reader for every bit.
select
  null::text, null::bigint, null::text, null::text, null::integer, null::text, null::text, null::text, null::bigint,
  null::bigint, null::bigint, null::bigint, null::text, null::text, null::text, null::text, null::bigint, null::text,
  null::boolean, null::integer, null::smallint,
  json_build_array(
    now,
    (select due from delayed),
    (select is_so from overdue),
    (select count(*) from chosen),
    (select are_several from chunk) and exists (select from edge),
    (select are_several from chunk) and not exists (select from chosen),
    exists (select from {schema}.token where token = %(token)s and at > now - 60000))::text
from present
cross join quiet
cross join (select count(*) from claimed) as taken
union all
select
  id::text, fence, task, queue, attempt, args, options, replica, created, due, claimed, lease, tags, meta, source,
  schedule, tick, key, cancelling, releases, rank, null
from claimed

-- name: take_new
-- Take a job that has just come, if it is as new jobs are and nobody else has it; other ones are left to `claim`.
with present as materialized (
  select {schema}.now_ms() as now
),
-- Nothing about the state, as in `claim`.
found as materialized (
  select queue, state, attempt, due, key_window
  from {schema}.job
  where id = %(id)s::uuid
  for update skip locked
),
fresh as (
  insert into {schema}.token (token, call, at)
  select %(token)s, %(call)s, now
  from found
  cross join present
  where state = 'r'
    and attempt = 0
    and due <= now
    -- Its key would have to be freed.
    and key_window is distinct from 'p'
    -- The clock has gone back, if it is earlier than is known.
    and now >= %(latest)s::bigint
    and not exists (select from {schema}.pause where pause.queue = found.queue)
  on conflict (token) do nothing
  returning token
),
claimed as (
  update {schema}.job
  set state = 'x',
      fence = greatest(fence + 1, now * 1000),
      attempt = 1,
      replica = %(replica)s,
      token = fresh.token,
      claimed = now,
      lease = now + term
  from fresh, present
  where job.id = %(id)s::uuid
  returning
    job.id, fence, task, queue, attempt, args, options, replica, created, due, claimed, lease, tags, meta, source,
    schedule, tick, key, cancelling, releases
),
counted as (
  insert into {schema}.flow (minute, queue, task, ready, running)
  select claimed / 60000 * 60000, queue, task, -1, 1
  from claimed
),
-- As in `claim`.
quiet as materialized (
  select set_config('synchronous_commit', 'off', true)
)
select
  id::text, fence, task, queue, attempt, args, options, replica, created, due, claimed, lease, tags, meta, source,
  schedule, tick, key, cancelling, releases,
  (select due from {schema}.job where state = 'd' order by due limit 1)
from claimed
cross join quiet

-- name: promote
-- Make a slice of the due jobs ready, whatever their queue, and say how many; and what time it is.
with present as materialized (
  select {schema}.now_ms() as now
),
overdue as materialized (
  select id
  from {schema}.job
  where state = 'd'
    and due <= (select now from present)
  order by due
  limit %(limit)s
  for update skip locked
),
promoted as (
  update {schema}.job
  set state = 'r'
  where id = any (array(select id from overdue))
  returning job.queue, job.task
),
counted as (
  insert into {schema}.flow (minute, queue, task, delayed, ready)
  select min(now) / 60000 * 60000, queue, task, - count(*), count(*)
  from promoted, present
  group by queue, task
)
select (select count(*) from promoted), now
from present

-- name: demote
-- Make ready jobs wait again that are not yet due: the clock has gone back.
with present as materialized (
  select {schema}.now_ms() as now
),
early as materialized (
  select id
  from {schema}.job
  where state = 'r'
    and due > (select now from present)
  for update skip locked
),
demoted as (
  update {schema}.job
  set state = 'd'
  where id = any (array(select id from early))
  returning job.queue, job.task
)
insert into {schema}.flow (minute, queue, task, delayed, ready)
select min(now) / 60000 * 60000, queue, task, count(*), - count(*)
from demoted, present
group by queue, task

-- name: find_again
-- What the call with this token took, as far as it is still held.
select
  id::text, fence, task, queue, attempt, args, options, replica, created, due, claimed, lease, tags, meta, source,
  schedule, tick, key, cancelling, releases
from {schema}.job
where lease is not null
  and token = %(token)s
order by rank, due, id

-- name: find_claims
-- Those of the jobs that are running.
select
  job.id::text, fence, task, queue, attempt, args, options, replica, created, due, claimed, lease, tags, meta, source,
  schedule, tick, key, cancelling, releases
from {schema}.job
where id = any (array(select value::uuid from json_array_elements_text(%(ids)s::json)))
  and state = 'x'

-- name: look_at_clock
-- The present, and whether a delayed job is due.
with present as materialized (
  select {schema}.now_ms() as now
)
select now, coalesce((select due from {schema}.job where state = 'd' order by due limit 1) <= now, false)
from present

-- name: ask_the_time
-- The present, and whether the server only reads: a standby, or one that was told to.
select {schema}.now_ms(), current_setting('transaction_read_only')::boolean

-- name: wait_a_little
-- Let somebody else's statement end.
select pg_sleep(0.003)
