-- name: add_moves
-- What has changed in the counts.
insert into {schema}.flow (minute, queue, task, ready, delayed, running, done, dead, cancelled)
select
  %(now)s::bigint / 60000 * 60000, queue, task, coalesce(ready, 0), coalesce(delayed, 0), coalesce(running, 0),
  coalesce(done, 0), coalesce(dead, 0), coalesce(cancelled, 0)
from json_to_recordset(%(moves)s::text::json) as move (
  queue text, task text, ready integer, delayed integer, running integer, done integer, dead integer, cancelled integer)
