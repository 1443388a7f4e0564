-- waiting: ready jobs of eight tasks in four queues, the oldest first, a second's worth of a thousand at a time.
insert into {schema}.job (id, queue, task, state, rank, due, term, created, args, options, source)
select
  gen_random_uuid(), 'queue-' || n %% 4, 'task_' || n %% 8, 'r', 0,
  {schema}.now_ms() - 3600000 + n / 300, 30000, {schema}.now_ms() - 3600000 + n / 300,
  '{{"order":' || n || ',"item":"snare drum"}}', %(options)s, 'manual'
from generate_series(1, %(count)s) as n;

-- finished: ended jobs, one of two hundred of them dead.
insert into {schema}.history (
  id, queue, task, state, due, fence, attempt, created, finished, expires, args, options, source, error, attempts, closed,
  result, result_is_repr
)
select
  gen_random_uuid(), 'queue-' || n %% 4, 'task_' || n %% 8, case when n %% 200 = 0 then 'f' else 'o' end,
  {schema}.now_ms() - 86400000 + n * 80, n, 1, {schema}.now_ms() - 86400000 + n * 80,
  {schema}.now_ms() - 86400000 + n * 80 + 200, {schema}.now_ms() + 86400000,
  '{{"order":' || n || ',"item":"snare drum"}}', %(options)s, 'manual',
  case when n %% 200 = 0 then 'Timeout: no answer for order ' || n end,
  case when n %% 200 = 0 then %(failed)s else %(done)s end, 1, 'null', false
from generate_series(1, %(count)s) as n;

-- totals: what the jobs above come to.
insert into {schema}.total
select
  queue, task, sum(ready), 0, 0, sum(done), sum(dead), 0, sum(done + dead), sum(done), sum(dead), max(error)
from (
  select queue, task, 1 as ready, 0 as done, 0 as dead, null as error from {schema}.job
  union all
  select queue, task, 0, (state = 'o')::int, (state = 'f')::int, error from {schema}.history
) as jobs
group by queue, task;

-- series: a day of minutes.
insert into {schema}.series
select
  ({schema}.now_ms() / 60000 - 1440 + minute) * 60000, 'queue-' || lane %% 4, 'task_' || lane, 90, 1, 1, 0, %(spread)s, %(spread)s
from generate_series(1, 1440) as minute, generate_series(0, 7) as lane;

-- learn: what the server knows of its tables after a while by itself.
analyze {schema}.job, {schema}.history, {schema}.total, {schema}.series;

-- commits: transactions of this database so far.
select xact_commit from pg_stat_database where datname = current_database();
