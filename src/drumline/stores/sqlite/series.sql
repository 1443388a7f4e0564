-- name: read_series
-- Some minutes.
select minute, queue, task, done, failed, dead, cancelled, wait, run
from drumline_series
where minute >= :start
  and minute < :end
order by minute, queue, task
