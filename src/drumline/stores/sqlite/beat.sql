-- name: find_replicas
-- All replicas that are known, the oldest first.
select id, info, started, seen
from drumline_replica
order by started, id

-- name: keep_replica
-- What a replica says of itself, and when.
insert into drumline_replica (id, info, started, seen)
values (:id, :info, :now, :now)
on conflict (id) do update
set info = excluded.info,
    seen = excluded.seen

-- name: drop_replica
-- A replica leaves.
delete from drumline_replica
where id = :id

-- name: start_epoch
-- A fleet starts.
update drumline_store
set epoch = epoch + 1

-- name: prolong
-- Let a claim hold for its term from now.
update drumline_job
set lease = :now + term
where id = :id

-- name: find_running
-- What the replica runs.
select id, fence
from drumline_job
where state = 'x'
  and replica = :replica
order by claimed, id

-- name: find_fleet
-- The counters of the whole fleet, and when its earliest lease ends.
select epoch, version, (select min(lease) from drumline_job where state = 'x')
from drumline_store

-- name: find_expired
-- Claims whose lease has passed, the longest past first.
select
  id, fence, task, queue, attempt, args, options, replica, created, due, claimed, lease, tags, meta, source, schedule,
  tick, key, cancelling, releases
from drumline_job
where state = 'x'
  and lease <= :now
order by lease, id
limit :limit

-- name: keep_words
-- What a running job says of itself; what it does not say stays.
update drumline_job
set progress = coalesce(:progress, progress),
    user_error = coalesce(:user_error, user_error)
where id = :id

-- name: find_lines
-- Of a job's log: how many lines it has, and the numbers of this claim's.
select (select count(*) from drumline_log where job = :job), number
from (select 1)
left join drumline_log on job = :job and fence = :fence

-- name: add_line
-- Add one line to a job's log.
insert into drumline_log (job, place, fence, number, at, level, message, fields, attempt)
values (:job, :place, :fence, :number, :at, :level, :message, :fields, :attempt)
