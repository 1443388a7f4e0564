-- The fleet's clock, in milliseconds: the only place where time is read. Not now(), which stands still inside a
-- caller's transaction.
create function {schema}.now_ms() returns bigint
language sql volatile
return floor(extract(epoch from clock_timestamp()) * 1000)::bigint;

-- Which store this is, and the counters of the whole fleet: one row.
create table {schema}.store (
  one     boolean primary key default true check (one),
  id      text    not null,
  epoch   bigint  not null default 0,
  version bigint  not null default 0
);

-- Unfinished jobs only: an ended one leaves for history in the statement that ends it. Instants are in milliseconds.
create table {schema}.job (
  -- What always has the same size comes first: it is found without a walk over what stands before it, and an update looks
  -- at every column that an index names.
  id         uuid                primary key with (fillfactor = 50),
  due        bigint              not null,
  created    bigint              not null,
  fence      bigint              not null default 0,
  -- how long a claim holds
  term       bigint              not null,
  attempt    integer             not null default 0,
  -- how often in a row it was given back
  releases   integer             not null default 0,
  -- how many attempts were closed
  closed     integer             not null default 0,
  -- minus priority: lower comes first, so that one index direction serves
  rank       smallint            not null,
  -- d delayed, r ready, x running, b blocked: waits for another job to end
  state      "char"              not null,
  cancelling boolean             not null default false,
  queue      text    collate "C" not null,
  task       text    collate "C" not null,
  -- JSON, kept as written: jsonb would change numbers and the order of keys
  args       text                not null,
  options    text                not null,
  source     text                not null,
  -- JSON lines, one per closed attempt
  attempts   text                not null default '',
  -- of the live claim; the lease is set exactly while the job is running
  lease      bigint,
  claimed    bigint,
  replica    text,
  token      text,
  waits_for  uuid,
  schedule   text    collate "C",
  tick       bigint,
  key        text    collate "C",
  key_window "char",
  key_span   bigint,
  tags       text,
  meta       text,
  origin     text,
  progress   text,
  user_error text,
  -- what the newest failed attempt died of
  error      text
) with (
  fillfactor = 70,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.2
);
-- A lane is the ready jobs of one task in one queue: those of tasks that nobody here knows are never looked at.
create index job_lane on {schema}.job (queue, task, rank, due, id) where state = 'r';
create index job_delayed on {schema}.job (due) where state = 'd';
-- The predicate is on purpose not "state = 'x'": finish says state = 'x', and the planner, which takes this index for
-- empty, would walk it once per outcome instead of using the primary key.
create index job_running on {schema}.job (lease) where lease is not null;
create index job_blocked on {schema}.job (waits_for) where waits_for is not null;
-- Not of running jobs: a claim would have to add to it.
create index job_created on {schema}.job (created, id) where lease is null;
create index job_schedule on {schema}.job (schedule, created, id) where schedule is not null;
create index job_key on {schema}.job (key, created, id) where key is not null;

-- Ended jobs.
create table {schema}.history (
  id             uuid                primary key,
  queue          text    collate "C" not null,
  task           text    collate "C" not null,
  -- o done, f dead, c cancelled
  state          "char"              not null,
  due            bigint              not null,
  fence          bigint              not null,
  attempt        integer             not null,
  created        bigint              not null,
  finished       bigint              not null,
  expires        bigint              not null,
  args           text                not null,
  options        text                not null,
  key            text    collate "C",
  key_window     "char",
  key_span       bigint,
  tags           text,
  meta           text,
  source         text                not null,
  origin         text,
  schedule       text    collate "C",
  tick           bigint,
  progress       text,
  user_error     text,
  error          text,
  attempts       text                not null,
  closed         integer             not null,
  result         text,
  result_is_repr boolean             not null
) with (
  autovacuum_vacuum_insert_scale_factor = 0.5,
  autovacuum_vacuum_cost_delay = 0
);
create index history_created on {schema}.history (created, id);
create index history_expires on {schema}.history (expires);
create index history_dead on {schema}.history (created, id) where state = 'f';
create index history_cancelled on {schema}.history (created, id) where state = 'c';
create index history_schedule on {schema}.history (schedule, created, id) where schedule is not null;
create index history_key on {schema}.history (key, created, id) where key is not null;

-- Whether none of these jobs, which were made just now, has ended before; else whoever made them has to begin again. Their
-- statement may have waited until the end of one was committed, and does not see it: a function looks anew.
create function {schema}.are_new(ids uuid[]) returns boolean
language plpgsql volatile
set enable_seqscan = off
as $$
begin
  if exists (select from {schema}.history where history.id = any (ids)) then
    raise exception 'one of these jobs has just ended' using errcode = 'serialization_failure';
  end if;
  return true;
end
$$;

create table {schema}.tag (
  tag     text   collate "C" not null,
  created bigint             not null,
  job     uuid               not null,
  primary key (tag, created, job)
);
create index tag_job on {schema}.tag (job);

-- Who holds a unique key. The window is u unfinished, p pending or t time; until is set where it ends by itself.
create table {schema}.key (
  task       text   collate "C" not null,
  key        text   collate "C" not null,
  job        uuid               not null,
  key_window "char"             not null,
  until      bigint,
  primary key (task, key)
);
create index key_until on {schema}.key (until) where until is not null;

-- Calls of claim that gave something, for their repetition; the job names the token.
create table {schema}.token (
  token text   collate "C" primary key,
  call  text               not null,
  at    bigint             not null
);
create index token_at on {schema}.token (at);

-- A job's log lines; the place counts from 0 in the order they came.
create table {schema}.log (
  job     uuid    not null,
  place   integer not null,
  fence   bigint  not null,
  number  integer not null,
  at      bigint  not null,
  level   text    not null,
  message text    not null,
  fields  text,
  attempt integer not null,
  primary key (job, place)
);
create unique index log_line on {schema}.log (job, fence, number);

-- What changed, appended by every step and never updated: no hot row, nothing to wait for. It is folded into the two
-- tables below, and whoever counts adds it to them.
create table {schema}.flow (
  number    bigint generated always as identity,
  minute    bigint             not null,
  queue     text   collate "C" not null,
  task      text   collate "C" not null,
  ready     integer            not null default 0,
  delayed   integer            not null default 0,
  running   integer            not null default 0,
  done      integer            not null default 0,
  dead      integer            not null default 0,
  cancelled integer            not null default 0,
  -- of the attempts closed: how they ended, and the buckets that their waits and runs fell into
  attempts      integer        not null default 0,
  ran_done      integer        not null default 0,
  ran_failed    integer        not null default 0,
  ran_dead      integer        not null default 0,
  ran_cancelled integer        not null default 0,
  last_error    text,
  waits         smallint[],
  runs          smallint[]
) with (
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0
);

-- Jobs by state, and what they have come to.
create table {schema}.total (
  queue          text   collate "C" not null,
  task           text   collate "C" not null,
  ready          bigint             not null,
  delayed        bigint             not null,
  running        bigint             not null,
  done           bigint             not null,
  dead           bigint             not null,
  cancelled      bigint             not null,
  attempts       bigint             not null,
  total_done     bigint             not null,
  total_failures bigint             not null,
  last_error     text,
  primary key (queue, task)
);

create table {schema}.series (
  minute    bigint             not null,
  queue     text   collate "C" not null,
  task      text   collate "C" not null,
  done      bigint             not null,
  failed    bigint             not null,
  dead      bigint             not null,
  cancelled bigint             not null,
  -- histograms
  waits     bigint[]           not null,
  runs      bigint[]           not null,
  primary key (minute, queue, task)
);

create table {schema}.replica (
  id      text   collate "C" primary key,
  info    text               not null,
  started bigint             not null,
  seen    bigint             not null
) with (fillfactor = 50);

create table {schema}.schedule (
  name           text   collate "C" primary key,
  spec           text               not null,
  version        bigint             not null default 0,
  declared       bigint             not null,
  begun          bigint             not null,
  last_tick      bigint             not null,
  last_fired     bigint,
  last_mark      text,
  leader         text,
  paused         bigint,
  paused_by      text,
  orphaned       bigint,
  total_runs     bigint             not null default 0,
  total_failures bigint             not null default 0
) with (fillfactor = 50);

-- The ledger: each tick at most once.
create table {schema}.tick (
  schedule text   collate "C" not null,
  replica  text   collate "C" not null,
  mark     text   collate "C" not null,
  instant  bigint             not null,
  decision text               not null,
  reason   text               not null,
  by       text               not null,
  recorded bigint             not null,
  job      uuid,
  until    bigint,
  count    bigint             not null,
  outcome  text,
  run_time bigint,
  rule     text,
  primary key (schedule, replica, mark)
);
create index tick_recorded on {schema}.tick (recorded, instant, schedule, replica, mark);
create index tick_schedule on {schema}.tick (schedule, recorded, instant, replica, mark);
create index tick_instant on {schema}.tick (schedule, instant, replica, mark);
create index tick_job on {schema}.tick (job) where job is not null;

-- Up to where a schedule's ledger was purged: ticks up to here may be forgotten, so they may never fire. Outlives the
-- schedule, for one of the same name may be registered later.
create table {schema}.ledger (
  schedule     text   collate "C" primary key,
  purged_to    bigint             not null,
  -- the same for ticks of a fleet's start, by epoch
  purged_start bigint             not null
);

create table {schema}.pause (
  queue text collate "C" primary key,
  by    text             not null
);

create table {schema}.audit (
  id      text   collate "C" primary key,
  at      bigint             not null,
  by      text               not null,
  action  text               not null,
  targets text               not null,
  answers text               not null,
  part_of text
);
create index audit_at on {schema}.audit (at, id);

-- Jobs for whose end a process waits: only of these the fleet is told.
create table {schema}.watch (
  job   uuid   primary key,
  until bigint not null
);

-- For other languages, and for triggers: enqueue inside the caller's transaction. Answers with the job's id, or, where the
-- key is taken, with that of its holder. With hint => false nobody is told at the commit, and workers find the job by
-- looking: a NOTIFY lets commits wait for each other.
create function {schema}.enqueue(
  task text,
  args json default '{}',
  queue text default 'default',
  priority integer default 0,
  delay interval default '0',
  key text default null,
  max_attempts integer default 5,
  hint boolean default true
) returns uuid
language plpgsql
as $$
#variable_conflict use_variable
declare
  now constant bigint := {schema}.now_ms();
  due constant bigint := now + greatest(floor(extract(epoch from delay) * 1000), 0)::bigint;
  state constant "char" := case when due > now then 'd' else 'r' end;
  -- UUIDv7: the time first, so that ids of one moment lie together.
  id constant uuid := (
    lpad(to_hex(now), 12, '0') || '7' || substr(md5(random()::text || clock_timestamp()::text), 1, 3)
    || to_hex(8 + floor(random() * 4)::integer) || substr(md5(gen_random_uuid()::text), 1, 15))::uuid;
  options constant text := json_strip_nulls(json_build_object(
    'queue', nullif(queue, 'default'),
    'priority', nullif(priority, 0),
    'max_attempts', nullif(max_attempts, 5)))::text;
  holder uuid;
begin
  if task !~ '^[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,99}$' or queue !~ '^[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,99}$' then
    raise exception 'task and queue must be 1 to 100 letters, digits or any of _ . : / -, got % and %', task, queue;
  end if;
  if json_typeof(args) <> 'object' then
    raise exception 'args must be a JSON object of the task''s arguments by name, got %', args;
  end if;
  if priority not between -100 and 100 or max_attempts not between 1 and 1000 then
    raise exception 'priority must be from -100 to 100, and max_attempts from 1 to 1000, got % and %',
      priority, max_attempts;
  end if;
  while key is not null loop
    delete from {schema}.key as held
    where held.task = task
      and held.key = key
      and held.until <= now;
    insert into {schema}.key as held (task, key, job, key_window)
    values (task, key, id, 'u')
    on conflict do nothing;
    exit when found;
    select held.job
    into holder
    from {schema}.key as held
    where held.task = task
      and held.key = key;
    if found then
      return holder;
    end if;
  end loop;
  insert into {schema}.job (
    id, queue, task, state, rank, due, term, created, args, options, key, key_window, source, origin)
  values (
    id, queue, task, state, - priority, due, 30000, now, args::text, options, key, case when key is not null then 'u' end,
    'manual', 'sql');
  insert into {schema}.flow (minute, queue, task, ready, delayed)
  values (now / 60000 * 60000, queue, task, (state = 'r')::integer, (state = 'd')::integer);
  if hint then
    perform pg_notify({channel}, E'sql\nqueue ' || queue);
  end if;
  return id;
end
$$;
