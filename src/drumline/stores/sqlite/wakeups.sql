-- name: read_hints
-- The news of all topics.
select topic, news
from drumline_hint

-- name: last_ended
-- The number of the newest ended job.
select coalesce(max(number), 0)
from drumline_history

-- name: read_ended
-- The jobs that have ended since.
select number, id
from drumline_history
where number > :number
order by number
limit :limit
