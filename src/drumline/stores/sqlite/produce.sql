-- name: find_standing
-- Those of the ids that stand for a job, with how it stands.
select job.id, job.state, job.due, job.cancelling, :now
from json_each(:ids) as wanted
cross join drumline_job as job on job.id = wanted.value
union all
select ended.id, ended.state, ended.due, 0, :now
from json_each(:ids) as wanted
cross join drumline_history as ended on ended.id = wanted.value

-- name: find_holders
-- Who holds the keys.
select holder.task, holder.key, holder.job
from json_each(:keys) as wanted
cross join drumline_key as holder
  on holder.task = json_extract(wanted.value, '$.task')
  and holder.key = json_extract(wanted.value, '$.key')
where holder.until is null
   or holder.until > :now

-- name: add_job
-- Make one job.
insert into drumline_job (
  id, queue, task, state, rank, due, term, created, args, options, key, key_window, key_span, tags, meta, source,
  origin, schedule, tick, waits_for)
values (
  :id, :queue, :task, :state, :rank, :due, :term, :created, :args, :options, :key, :key_window, :key_span, :tags,
  :meta, :source, :origin, :schedule, :tick, :waits_for)

-- name: add_tag
-- Find the job by its tag. A job may name a tag twice.
insert or ignore into drumline_tag (tag, created, job)
values (:tag, :created, :job)

-- name: drop_tag
-- Find the job no more by its tag.
delete from drumline_tag
where tag = :tag
  and created = :created
  and job = :job

-- name: hold_key
-- The job holds the key from now on.
insert or replace into drumline_key (task, key, job, window, until)
values (:task, :key, :job, :key_window, :until)

-- name: hold_again
-- Let a job hold its key again, unless another one does.
insert into drumline_key as held (task, key, job, window, until)
values (:task, :key, :job, :key_window, :until)
on conflict (task, key) do update
set job = excluded.job,
    window = excluded.window,
    until = excluded.until
where held.job = excluded.job
   or held.until <= :now
returning key

-- name: find_replaced
-- A job that waits, as far as a replacement has to know it.
select queue, state, created, tags
from drumline_job
where id = :id
  and state in ('d', 'r', 'b')

-- name: replace_job
-- Give a waiting job the arguments, start, options, tags and meta of another.
update drumline_job
set queue = :queue,
    state = case when state = 'b' then 'b' else :state end,
    rank = :rank,
    due = :due,
    term = :term,
    args = :args,
    options = :options,
    tags = :tags,
    meta = :meta
where id = :id
