-- name: settings
-- What a commit waits for.
select name, setting
from pg_catalog.pg_settings
where name in ('fsync', 'full_page_writes', 'synchronous_commit')

-- name: long_transaction
-- The longest open transaction, if it is older than five minutes: nothing that ended since can be cleared away.
select pid, coalesce(usename, '?'), to_char(xact_start at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
from pg_catalog.pg_stat_activity
where datname = current_database()
  and backend_type = 'client backend'
  and backend_xmin is not null
  and xact_start < clock_timestamp() - interval '5 minutes'
order by xact_start
limit 1
