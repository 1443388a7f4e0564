-- name: prepare
-- The list of applied migrations.
create table if not exists {schema}.migration (
  version  integer primary key,
  name     text    not null,
  checksum text    not null,
  -- the oldest version whose code goes on with it
  serves   integer not null,
  applied  bigint  not null)

-- name: applied
-- Which migrations were applied.
select version, checksum
from {schema}.migration

-- name: record
-- A migration was applied.
insert into {schema}.migration (version, name, checksum, serves, applied)
values (%(version)s, %(name)s, %(checksum)s, %(serves)s, (extract(epoch from clock_timestamp()) * 1000)::bigint)

-- name: serves
-- The oldest version whose code goes on with all migrations after this one.
select max(serves)
from {schema}.migration
where version > %(version)s

-- name: find_migrations
-- Whether there is a list of migrations.
select to_regclass(%(table)s) is not null

-- name: lock_migrations
-- Of many who migrate at once, one does.
select pg_advisory_xact_lock(hashtextextended(%(what)s, 0))

-- name: find_schema
-- Whether the namespace is there. A query sees what was committed while we waited for the lock; `if not exists` looks into
-- a cache that may still say no.
select exists (
  select
  from pg_catalog.pg_namespace
  where nspname = %(name)s
)

-- name: create_schema
-- The namespace.
create schema if not exists {schema}

-- name: name_store
-- A new store gets its id.
insert into {schema}.store (id)
values (%(id)s)
on conflict do nothing

-- name: find_store
-- Which store this is, and what time it is there.
select id, {schema}.now_ms()
from {schema}.store

-- name: settle_session
-- A plan is kept from when a table was empty: it shall use the indexes that it will need. And nothing here runs so long
-- that compiling it would pay.
select set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false),
  set_config('plan_cache_mode', 'force_generic_plan', false)
