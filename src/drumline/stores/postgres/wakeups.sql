-- name: notify
-- Tell the fleet that there is news. It arrives when this is committed, and that need not wait for the disk.
with quiet as materialized (
  select set_config('synchronous_commit', 'off', true)
)
select pg_notify(%(channel)s, message)
from quiet
cross join json_array_elements_text(%(messages)s::json) as message

-- name: watch
-- Let the fleet be told of the ends of these jobs.
insert into {schema}.watch (job, until)
select distinct value::uuid, {schema}.now_ms() + 3600000
from json_array_elements_text(%(ids)s::json)
on conflict (job) do update
set until = excluded.until

-- name: find_ended
-- Those of the jobs that have ended.
select history.id::text
from json_array_elements_text(%(ids)s::json) as wanted
join {schema}.history on history.id = wanted.value::uuid
