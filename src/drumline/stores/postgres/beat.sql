-- name: beat
-- Prolong what is still held, tell what the replica says of itself, and answer with what it has to know.
with present as materialized (
  select {schema}.now_ms() as now
),
held as materialized (
  select *
  from json_to_recordset(%(held)s::json) as h (id uuid, fence bigint)
),
-- In their order, as all who hold several jobs, so that they wait for each other in turn. By an array, so that the
-- primary key is used whatever the planner believes of the table.
locked as materialized (
  select id
  from {schema}.job
  where id = any (array(select id from held))
    and state = 'x'
  order by id
  for no key update
),
-- By id, and not by the place where it was found: a job that speaks in this very moment moves, and its claim would be
-- taken for lost.
kept as (
  update {schema}.job
  set lease = now + term
  from held, present
  where job.id = any (array(select id from locked))
    and job.id = held.id
    and job.fence = held.fence
    and job.state = 'x'
  returning job.id, job.fence, job.cancelling, job.lease
),
seen as (
  update {schema}.replica
  set info = %(info)s,
      seen = now
  from present
  where id = %(replica)s
    and not %(is_gone)s
  returning id
),
left_fleet as (
  delete from {schema}.replica
  where id = %(replica)s
    and %(is_gone)s
),
-- All that run. By a range, which the planner takes for a small part of the table, whatever it believes of it.
running as materialized (
  select id, fence, replica, lease
  from {schema}.job
  where lease between 0 and 9223372036854775807
),
others as materialized (
  select *
  from running
  where not exists (select from held where held.id = running.id and held.fence = running.fence)
),
-- A lease that is lost in a crash of the server is prolonged by the next beat.
quiet as materialized (
  select set_config('synchronous_commit', 'off', true)
)
select
  now, epoch, version,
  exists (select from seen),
  (select coalesce(json_agg(json_build_array(id, fence, cancelling)), '[]')::text from kept),
  (select coalesce(json_agg(id), '[]')::text from others where replica = %(replica)s),
  least((select min(lease) from kept), (select min(lease) from others))
from {schema}.store
cross join present
cross join quiet

-- name: lock_fleet
-- Of those who join the fleet, one after the other.
select epoch
from {schema}.store
for update

-- name: find_replicas
-- All replicas that are known, the oldest first.
select id, info, started, seen
from {schema}.replica
order by started, id

-- name: keep_replica
-- What a replica says of itself, and when.
insert into {schema}.replica (id, info, started, seen)
values (%(id)s, %(info)s, %(now)s, %(now)s)
on conflict (id) do update
set info = excluded.info,
    seen = excluded.seen

-- name: start_epoch
-- A fleet starts.
update {schema}.store
set epoch = epoch + 1
returning epoch

-- name: find_expired
-- Claims whose lease has passed, the longest past first.
select
  id::text, fence, task, queue, attempt, args, options, replica, created, due, claimed, lease, tags, meta, source,
  schedule, tick, key, cancelling, releases
from {schema}.job
where lease is not null
  and lease <= (select {schema}.now_ms())
order by lease, id
limit %(limit)s

-- name: hold_claims
-- Those of the claims that are still held; nobody ends them meanwhile.
select job.id::text, job.fence
from json_to_recordset(%(refs)s::json) as wanted (id uuid, fence bigint)
join {schema}.job on job.id = wanted.id and job.fence = wanted.fence
where job.state = 'x'
order by job.id
for update of job

-- name: keep_words
-- What running jobs say of themselves; what they do not say stays.
update {schema}.job
set progress = coalesce(said.progress, job.progress),
    user_error = coalesce(said.user_error, job.user_error)
from json_to_recordset(%(words)s::json) as said (id uuid, progress text, user_error text)
where job.id = said.id

-- name: find_lines
-- Of a job's log: how many lines it has, and the numbers of this claim's.
select
  (select count(*) from {schema}.log where job = %(job)s::uuid),
  array(select number from {schema}.log where job = %(job)s::uuid and fence = %(fence)s)

-- name: add_lines
-- Add lines to a job's log.
insert into {schema}.log (job, place, fence, number, at, level, message, fields, attempt)
select job, place, fence, number, at, level, message, fields, attempt
from json_to_recordset(%(lines)s::json) as line (
  job uuid, place integer, fence bigint, number integer, at bigint, level text, message text, fields text, attempt integer)
