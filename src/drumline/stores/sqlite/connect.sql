-- name: prepare
-- The list of applied migrations.
create table if not exists drumline_migration (
  version  integer primary key,
  name     text    not null,
  checksum text    not null,
  applied  integer not null)

-- name: applied
-- Which migrations were applied.
select version, checksum
from drumline_migration

-- name: record
-- A migration was applied.
insert into drumline_migration (version, name, checksum, applied)
values (:version, :name, :checksum, :at)

-- name: has_migrations
-- Whether there is a list of migrations.
select 1
from sqlite_master
where type = 'table'
  and name = 'drumline_migration'

-- name: name_store
-- A new store gets its id.
insert or ignore into drumline_store (one, id)
values (1, :id)
