-- Which store this is, and the counters of the whole fleet: one row.
create table drumline_store (
  one     integer primary key check (one = 1),
  id      text    not null,
  epoch   integer not null default 0,
  version integer not null default 0
);

-- Unfinished jobs only: an ended one leaves for history in the step that ends it. Every instant is in milliseconds.
create table drumline_job (
  id         text    not null primary key,
  queue      text    not null,
  task       text    not null,
  -- d delayed, r ready, x running, b blocked: waits for another job to end
  state      text    not null,
  -- minus priority: lower comes first, so that one index direction serves
  rank       integer not null,
  due        integer not null,
  fence      integer not null default 0,
  attempt    integer not null default 0,
  -- how often in a row it was given back
  releases   integer not null default 0,
  -- how long a claim holds
  term       integer not null,
  cancelling integer not null default 0,
  -- of the live claim
  replica    text,
  claimed    integer,
  lease      integer,
  created    integer not null,
  args       blob    not null,
  options    blob    not null,
  key        text,
  key_window text,
  key_span   integer,
  tags       text,
  meta       blob,
  source     text    not null,
  origin     text,
  schedule   text,
  tick       integer,
  waits_for  text,
  progress   text,
  user_error text,
  -- what the newest failed attempt died of
  error      text,
  -- JSON lines, one per closed attempt, and how many they are
  attempts   text    not null default '',
  closed     integer not null default 0
);
-- A lane is the ready jobs of one task in one queue: those of tasks that nobody here knows are never looked at.
create index drumline_job_lane on drumline_job (queue, task, rank, due, id) where state = 'r';
create index drumline_job_delayed on drumline_job (due) where state = 'd';
create index drumline_job_running on drumline_job (lease, id, replica) where state = 'x';
create index drumline_job_blocked on drumline_job (waits_for) where state = 'b';
create index drumline_job_created on drumline_job (created, id);
create index drumline_job_schedule on drumline_job (schedule, created, id) where schedule is not null;
create index drumline_job_key on drumline_job (key, created, id) where key is not null;

-- Ended jobs. The number only grows, so that a watcher can read what has ended since it last looked.
create table drumline_history (
  number         integer primary key autoincrement,
  id             text    not null unique,
  queue          text    not null,
  task           text    not null,
  -- o done, f dead, c cancelled
  state          text    not null,
  due            integer not null,
  fence          integer not null,
  attempt        integer not null,
  created        integer not null,
  finished       integer not null,
  expires        integer not null,
  args           blob    not null,
  options        blob    not null,
  key            text,
  key_window     text,
  key_span       integer,
  tags           text,
  meta           blob,
  source         text    not null,
  origin         text,
  schedule       text,
  tick           integer,
  progress       text,
  user_error     text,
  error          text,
  attempts       text    not null,
  closed         integer not null,
  result         blob,
  result_is_repr integer not null default 0
);
create index drumline_history_created on drumline_history (created, id);
create index drumline_history_expires on drumline_history (expires);
create index drumline_history_dead on drumline_history (created, id) where state = 'f';
create index drumline_history_cancelled on drumline_history (created, id) where state = 'c';
create index drumline_history_schedule on drumline_history (schedule, created, id) where schedule is not null;
create index drumline_history_key on drumline_history (key, created, id) where key is not null;

create table drumline_tag (
  tag     text    not null,
  created integer not null,
  job     text    not null,
  primary key (tag, created, job)
) without rowid;

-- Who holds a unique key. The window is u unfinished, p pending or t time; until is set where it ends by itself.
create table drumline_key (
  task   text not null,
  key    text not null,
  job    text not null,
  window text not null,
  until  integer,
  primary key (task, key)
) without rowid;
create index drumline_key_until on drumline_key (until) where until is not null;

-- What a call of claim gave, for its repetition.
create table drumline_token (
  token text    not null primary key,
  at    integer not null,
  refs  text    not null
) without rowid;
create index drumline_token_at on drumline_token (at);

-- A job's log lines; the place counts from 0 in the order they came.
create table drumline_log (
  job     text    not null,
  place   integer not null,
  fence   integer not null,
  number  integer not null,
  at      integer not null,
  level   text    not null,
  message text    not null,
  fields  text,
  attempt integer not null,
  primary key (job, place)
) without rowid;
create unique index drumline_log_line on drumline_log (job, fence, number);

-- Jobs by state, and what they have come to. One writer at a time, so counters may be plain rows.
create table drumline_total (
  queue          text    not null,
  task           text    not null,
  ready          integer not null,
  delayed        integer not null,
  running        integer not null,
  done           integer not null,
  dead           integer not null,
  cancelled      integer not null,
  attempts       integer not null,
  total_done     integer not null,
  total_failures integer not null,
  last_error     text,
  primary key (queue, task)
) without rowid;

create table drumline_series (
  minute    integer not null,
  queue     text    not null,
  task      text    not null,
  done      integer not null,
  failed    integer not null,
  dead      integer not null,
  cancelled integer not null,
  -- histograms, as JSON arrays
  wait      text    not null,
  run       text    not null,
  primary key (minute, queue, task)
) without rowid;

create table drumline_replica (
  id      text    not null primary key,
  info    text    not null,
  started integer not null,
  seen    integer not null
) without rowid;

create table drumline_schedule (
  name           text    not null primary key,
  spec           text    not null,
  version        integer not null default 0,
  declared       integer not null,
  begun          integer not null,
  last_tick      integer not null,
  last_fired     integer,
  last_mark      text,
  leader         text,
  paused         integer,
  paused_by      text,
  orphaned       integer,
  total_runs     integer not null default 0,
  total_failures integer not null default 0
) without rowid;

-- The ledger: each tick at most once.
create table drumline_tick (
  schedule text    not null,
  replica  text    not null,
  mark     text    not null,
  instant  integer not null,
  decision text    not null,
  reason   text    not null,
  by       text    not null,
  recorded integer not null,
  job      text,
  until    integer,
  count    integer not null,
  outcome  text,
  run_time integer,
  rule     text,
  primary key (schedule, replica, mark)
) without rowid;
create index drumline_tick_recorded on drumline_tick (recorded, instant, schedule, replica, mark);
create index drumline_tick_schedule on drumline_tick (schedule, recorded, instant, replica, mark);
create index drumline_tick_instant on drumline_tick (schedule, instant, replica, mark);
create index drumline_tick_job on drumline_tick (job) where job is not null;

-- Up to where a schedule's ledger was purged: ticks up to here may be forgotten, so they may never fire. Outlives the
-- schedule, for one of the same name may be registered later.
create table drumline_ledger (
  schedule     text    not null primary key,
  purged_to    integer not null,
  -- the same for ticks of a fleet's start, by epoch
  purged_start integer not null
) without rowid;

create table drumline_pause (
  queue text not null primary key,
  by    text not null
) without rowid;

create table drumline_audit (
  id      text    not null primary key,
  at      integer not null,
  by      text    not null,
  action  text    not null,
  targets text    not null,
  answers text    not null,
  part_of text
) without rowid;
create index drumline_audit_at on drumline_audit (at, id);

-- What there is news about, for other processes: the number grows with every hint.
create table drumline_hint (
  topic text    not null primary key,
  news  integer not null
) without rowid;
