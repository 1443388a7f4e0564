import logging
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from drumline.errors import SchemaMismatch, StoreUnusable
from drumline.model.query import JobFilter
from drumline.stores.sqlite import SqliteStore, connect
from drumline.stores.sqlite.connect import is_affected_by_wal_reset
from drumline.stores.sqlite.mounts import find_network_mount, read_mounts
from tests.support.build import new_job

MOUNTS = r"""
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:25 / /mnt/team\040share rw,relatime shared:1 - nfs4 host:/export rw
31 22 0:26 / /mnt/team\040share/local rw,relatime - xfs /dev/vdb rw
32 22 0:27 / /mnt/windows rw,relatime - 9p C:\134 rw
33 22 0:28 / /mnt/over rw,relatime - nfs host:/x rw
34 22 0:29 / /mnt/over rw,relatime - ext4 /dev/vdc rw
35 22 0:30 / /mnt/ssh rw,relatime - fuse.sshfs me@host: rw
"""
PRINTED = """
/dev/disk1s1 on / (apfs, local, journaled)
//me@server/share on /Volumes/share (smbfs, nodev, nosuid, mounted by me)
"""


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def tables_of(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}


def test_a_new_database_and_what_lies_beside_it_are_for_their_owner_only(path, store):
    store.enqueue([new_job()]).run()
    store.jobs(JobFilter()).run()
    found = sorted(path.parent.iterdir())
    assert [file.name for file in found] == ["jobs.db", "jobs.db-lock", "jobs.db-shm", "jobs.db-wal"]
    assert {mode_of(file) for file in found} == {0o600}


def test_the_rights_of_a_database_that_was_there_are_left_and_followed(path):
    path.touch(0o640)
    path.chmod(0o640)
    store = SqliteStore(path)
    store.migrate().run()
    store.enqueue([new_job()]).run()
    assert {mode_of(file) for file in path.parent.iterdir()} == {0o640}
    store.close().run()


def test_another_programs_database_gets_the_tables_beside_its_own(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table orders (id integer)")
    store = SqliteStore(path)
    store.migrate().run()
    assert store.enqueue([new_job()]).run()[0].created
    store.close().run()
    # SQLite makes the second for itself, where numbers shall not be given again.
    own = tables_of(path) - {"orders", "sqlite_sequence"}
    assert own
    assert all(name.startswith("drumline_") for name in own)


@pytest.mark.parametrize("address", ["", ":memory:", "file:jobs.db?mode=memory"])
def test_a_store_that_is_no_file_is_refused(address):
    with pytest.raises(StoreUnusable, match="memory://"):
        SqliteStore(address)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(StoreUnusable, match=r"there is no folder .*missing"):
        SqliteStore(tmp_path / "missing" / "jobs.db").migrate().run()


def test_a_folder_in_place_of_the_file_is_refused(tmp_path):
    with pytest.raises(StoreUnusable, match="is a folder"):
        SqliteStore(tmp_path).migrate().run()


def test_a_folder_that_may_not_be_looked_into_is_refused(path, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", refuse)
    with pytest.raises(StoreUnusable, match="may not look here"):
        SqliteStore(path).migrate().run()


def test_only_migrate_makes_the_file(path):
    with pytest.raises(StoreUnusable, match="no such database"):
        SqliteStore(path).jobs(JobFilter()).run()
    assert not path.exists()


def test_a_store_without_tables_asks_to_be_migrated(path):
    path.touch()
    store = SqliteStore(path)
    with pytest.raises(SchemaMismatch, match=r"holds no Drumline tables.*drumline migrate"):
        store.enqueue([new_job()]).run()
    with pytest.raises(SchemaMismatch, match=r"holds no Drumline tables.*drumline migrate"):
        store.counts().run()
    store.migrate().run()
    assert store.enqueue([new_job()]).run()[0].created
    store.close().run()


@pytest.mark.parametrize("content", [b"Dear diary, " * 100, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_file_that_is_no_database_is_refused_and_left_alone(path, content):
    path.write_bytes(content)
    store = SqliteStore(path)
    with pytest.raises(StoreUnusable, match=r"not an SQLite database|damaged"):
        store.migrate().run()
    store.close().run()
    assert path.read_bytes() == content


# By a stand-in for the answer: whoever runs the tests as root may write everywhere.
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_place_that_cannot_be_written_to_is_refused(path, store, monkeypatch, what):
    store.close().run()
    target = path if what == "file" else path.parent
    monkeypatch.setattr(os, "access", lambda place, mode: place != target)
    with pytest.raises(StoreUnusable, match=f"{target}: this user may not write here"):
        store.enqueue([new_job()]).run()


def test_a_newer_schema_is_refused_naming_both_versions(path, store):
    store.close().run()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("insert into drumline_migration values (7, 'later', '', 0)")
        connection.commit()
    for operation in (store.migrate(), store.enqueue([new_job()]), store.jobs(JobFilter())):
        with pytest.raises(SchemaMismatch, match="has schema version 7, but this Drumline knows only 1: upgrade"):
            operation.run()


def test_a_schema_made_by_another_text_of_the_same_number_is_refused(path, store):
    store.close().run()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("update drumline_migration set checksum = 'other'")
        connection.commit()
    with pytest.raises(SchemaMismatch, match=r"migration 1 .initial. differs"):
        store.migrate().run()


def test_ten_processes_migrate_at_once_and_one_does_it(path):
    code = (
        "import sys; from drumline.stores.sqlite import SqliteStore; store = SqliteStore(sys.argv[1]);"
        " sys.stdin.read(); store.migrate().run(); store.counts().run(); store.close().run()"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE) for _ in range(10)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
    assert [process.wait(50) for process in processes] == [0] * 10
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("select version, name from drumline_migration").fetchall() == [(1, "initial")]
        assert connection.execute("select count(*) from drumline_store").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/srv/jobs.db", None),
        ("/mnt/team share/jobs.db", ("/mnt/team share", "nfs4")),
        ("/mnt/team share/local/jobs.db", None),
        ("/mnt/team shareholders/jobs.db", None),
        ("/mnt/windows/jobs.db", ("/mnt/windows", "9p")),
        ("/mnt/over/jobs.db", None),
        ("/mnt/ssh/deep/jobs.db", ("/mnt/ssh", "fuse.sshfs")),
    ],
)
def test_the_mount_that_a_file_lies_on_decides(path, found):
    assert find_network_mount(Path(path), MOUNTS) == found


@pytest.mark.parametrize(
    ("path", "found"), [("/opt/jobs.db", None), ("/Volumes/share/jobs.db", ("/Volumes/share", "smbfs"))]
)
def test_mounts_are_understood_as_macos_prints_them(path, found):
    assert find_network_mount(Path(path), PRINTED) == found


def test_mounts_that_nobody_tells_of_are_trusted():
    assert find_network_mount(Path("/srv/jobs.db"), "") is None


def test_this_systems_own_mounts_are_understood(tmp_path):
    assert find_network_mount(tmp_path, read_mounts()) is None


def test_a_network_file_system_is_refused_unless_it_is_allowed(path, monkeypatch):
    mounts = f"30 22 0:25 / {path.parent} rw - nfs4 host:/export rw"
    monkeypatch.setattr(connect, "read_mounts", lambda: mounts)
    with pytest.raises(StoreUnusable, match=r"network file system \(nfs4\)"):
        SqliteStore(path).migrate().run()
    allowed = SqliteStore(path, allow_network_fs=True)
    allowed.migrate().run()
    allowed.close().run()


@pytest.mark.parametrize(
    ("version", "is_affected"),
    [
        ((3, 35, 0), True),
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 54, 1), False),
    ],
)
def test_the_versions_that_may_lose_a_commit_are_known(version, is_affected):
    assert is_affected_by_wal_reset(version) is is_affected


def test_a_library_that_is_too_old_is_refused(path, monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(StoreUnusable, match=r"3\.34\.1 is too old"):
        SqliteStore(path).migrate().run()


def test_a_library_with_the_known_fault_is_told_of_once(path, monkeypatch, caplog):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 41, 17))
    with caplog.at_level(logging.INFO, "drumline.sqlite"):
        for _ in range(2):
            store = SqliteStore(path)
            store.migrate().run()
            store.close().run()
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "3.41.17" in caplog.text
