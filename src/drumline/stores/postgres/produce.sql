-- name: add_jobs
-- Make the jobs that are new, and answer with them; one that is left out already stands.
with present as materialized (
  select {schema}.now_ms() as now
),
wanted as materialized (
  select
    new.*, present.now,
    greatest(coalesce(new.start_at, present.now + coalesce(new.start_in, 0)), present.now) as due
  from present
  cross join json_to_recordset(%(jobs)s::text::json) as new (
    id uuid, queue text, task text, rank smallint, term bigint, args text, options text, source text, start_at bigint,
    start_in bigint, key text, key_window "char", key_span bigint, tags text, meta text, origin text, schedule text,
    tick bigint, waits_for uuid)
),
made as (
  insert into {schema}.job (
    id, queue, task, state, rank, due, term, created, args, options, key, key_window, key_span, tags, meta, source,
    origin, schedule, tick, waits_for)
  select
    id, queue, task, (case when waits_for is not null then 'b' when due > now then 'd' else 'r' end)::"char", rank,
    due, term, now, args, options, key, key_window, key_span, tags, meta, source, origin, schedule, tick, waits_for
  from wanted
  -- A repeated call whose first reply was lost must not revive a job that has ended.
  where not exists (select from {schema}.history where history.id = wanted.id)
  on conflict (id) do nothing
  returning id, queue, task, state, created, tags
),
counted as (
  insert into {schema}.flow (minute, queue, task, ready, delayed)
  select
    min(created) / 60000 * 60000, queue, task, count(*) filter (where state = 'r'),
    count(*) filter (where state <> 'r')
  from made
  group by queue, task
),
tagged as (
  insert into {schema}.tag (tag, created, job)
  select distinct tag, created, id
  from made
  cross join json_array_elements_text(made.tags::json) as tag
  where tags is not null
),
-- Only if the user asks: the newest jobs may be lost in a crash of the server.
quiet as materialized (
  select set_config('synchronous_commit', 'off', true)
  where %(is_quick)s::boolean
),
-- The hint, where nobody else is about to say one: commits that tell something wait for each other.
told as materialized (
  select pg_notify({channel}, %(message)s::text)
  where case
    when %(message)s::text is null then false
    else pg_try_advisory_xact_lock(hashtextextended({channel}, 0))
  end
)
select id::text, state::text, exists (select from told)
from made
left join quiet on true
-- Nor one that ends meanwhile.
where (select {schema}.are_new(array(select id from made)))

-- name: find_standing
-- Those of the ids that stand for a job, with how it stands, and the present. By an array, so that the primary keys are
-- used whatever the planner believes of the tables.
select id::text, state::text, due, cancelling, {schema}.now_ms()
from {schema}.job
where id = any (array(select value::uuid from json_array_elements_text(%(ids)s::text::json)))
union all
select id::text, state::text, due, false, 0
from {schema}.history
where id = any (array(select value::uuid from json_array_elements_text(%(ids)s::text::json)))

-- name: drop_spent_keys
-- Forget those of the keys that are held no more.
delete from {schema}.key
using json_to_recordset(%(keys)s::text::json) as wanted (task text, key text)
where key.task = wanted.task
  and key.key = wanted.key
  and key.until <= {schema}.now_ms()

-- name: take_keys
-- Hold the keys that are free, and answer with them. In their order, so that two who do this wait for each other in turn.
insert into {schema}.key (task, key, job, key_window, until)
select task, key, job, key_window, {schema}.now_ms() + span
from json_to_recordset(%(keys)s::text::json) as wanted (task text, key text, job uuid, key_window "char", span bigint)
order by task collate "C", key collate "C"
on conflict (task, key) do nothing
returning task, key

-- name: find_holders
-- Who holds the keys.
select key.task, key.key, key.job::text
from json_to_recordset(%(keys)s::text::json) as wanted (task text, key text)
join {schema}.key on key.task = wanted.task and key.key = wanted.key
where key.until is null
   or key.until > {schema}.now_ms()

-- name: hold_again
-- Let a job hold its key again, unless another one does.
insert into {schema}.key as held (task, key, job, key_window, until)
values (%(task)s, %(key)s, %(job)s::uuid, %(key_window)s, %(until)s)
on conflict (task, key) do update
set job = excluded.job,
    key_window = excluded.key_window,
    until = excluded.until
where held.job = excluded.job
   or held.until <= {schema}.now_ms()
returning held.key

-- name: find_replaced
-- A job that waits, as far as a replacement has to know it; nobody takes it meanwhile.
select queue, state::text
from {schema}.job
where id = %(id)s::uuid
  and state in ('d', 'r', 'b')
for update

-- name: replace_job
-- Give a waiting job the arguments, start, options, tags and meta of another.
with wanted as (
  select
    new.*,
    greatest(coalesce(new.start_at, %(now)s::bigint + coalesce(new.start_in, 0)), %(now)s::bigint) as due
  from json_to_record(%(job)s::text::json) as new (
    queue text, rank smallint, term bigint, args text, options text, start_at bigint, start_in bigint, tags text,
    meta text)
)
update {schema}.job
set queue = wanted.queue,
    state = (case when job.state = 'b' then 'b' when wanted.due > %(now)s::bigint then 'd' else 'r' end)::"char",
    rank = wanted.rank,
    due = wanted.due,
    term = wanted.term,
    args = wanted.args,
    options = wanted.options,
    tags = wanted.tags,
    meta = wanted.meta
from wanted
where id = %(id)s::uuid
returning job.state::text, job.created

-- name: drop_tags
-- Find the job no more by its tags.
delete from {schema}.tag
where job = %(id)s::uuid

-- name: add_tags
-- Find the job by its tags.
insert into {schema}.tag (tag, created, job)
select distinct tag, %(created)s::bigint, %(id)s::uuid
from json_array_elements_text(%(tags)s::text::json) as tag
on conflict do nothing
