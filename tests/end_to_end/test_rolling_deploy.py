"""A rolling deploy: code of this version and of the next one on one store, side by side."""

from collections.abc import Callable, Iterator

import pytest

from drumline import Drumline
from drumline.errors import SchemaMismatch
from drumline.stores.files import Migration
from drumline.stores.postgres import PostgresStore, connect
from tests.end_to_end import clockwork
from tests.end_to_end.fleet import Fleet, fleet, until
from tests.end_to_end.homes import ServerHome
from tests.support.postgres import Server, new_server

APP = "tests.end_to_end.clockwork:drum"
OURS = connect._MIGRATIONS[-1].version  # noqa: SLF001 - the next version's code differs in nothing else
ADDING = Migration(
    OURS + 1,
    "colour",
    f"""-- serves: {OURS}
alter table {{schema}}.job add column colour text not null default 'red';
alter table {{schema}}.history add column colour text not null default 'red';
create index job_colour on {{schema}}.job (colour);
create table {{schema}}.palette (colour text primary key);
""",
)
REMOVING = Migration(OURS + 2, "plain", "alter table {schema}.job drop column releases;\n")


@pytest.fixture
def server() -> Iterator[Server]:
    with new_server() as running:
        yield running


@pytest.fixture
def become(monkeypatch) -> Callable[..., None]:
    """Let this process run the code of a later version, which knows these migrations too."""

    def know(*migrations: Migration) -> None:
        monkeypatch.setattr(connect, "_MIGRATIONS", [*connect._MIGRATIONS, *migrations])  # noqa: SLF001

    return know


def enqueue(drum: Drumline, first: int, count: int = 200) -> list[str]:
    calls = [clockwork.strike.call(number) for number in range(first, first + count)]
    return [job.id for job in drum.enqueue_many_sync(calls)]


def all_done(band: Fleet, ids: list[str]) -> bool:
    return all(band.job(job_id).state == "done" for job_id in ids)


@pytest.mark.timeout(120)
def test_old_code_goes_on_while_and_after_new_code_migrates(tmp_path, server, become):
    with fleet(tmp_path, ServerHome(server.url), APP) as band:
        old = band.start("--concurrency", "20", command="run")
        ids = enqueue(band.drum, 0)
        until(lambda: band.lines("strike"), "old code has begun")
        become(ADDING)
        newer = PostgresStore(server.url)
        newer.migrate().run()
        ids += enqueue(band.drum, 1000)
        until(lambda: all_done(band, ids), "old code has done what was enqueued before and after")
        assert old.poll() is None
        # One that crashes during the deploy comes back as what it was.
        old.kill()
        again = band.start("--concurrency", "20", command="run")
        ids += enqueue(band.drum, 2000)
        until(lambda: all_done(band, ids), "old code that was started again works too")
        assert [sum(attempt.ended == "done" for attempt in band.job(job_id).attempts) for job_id in ids] == [1] * 600
        again.terminate()
        assert again.wait(30) == 0
        assert band.command("migrate", "--check").returncode == 0
        newer.close().run()


@pytest.mark.timeout(60)
def test_code_that_the_schema_no_longer_serves_is_refused_when_it_starts(tmp_path, server, become):
    with fleet(tmp_path, ServerHome(server.url), APP) as band:
        become(ADDING, REMOVING)
        newest = PostgresStore(server.url)
        newest.migrate().run()
        newest.close().run()
        assert band.start(command="run").wait(30) == 75
        assert f"has schema version {OURS + 2}, but this Drumline knows only {OURS}: upgrade Drumline" in band.log()
        assert band.command("migrate", "--check").returncode == 75


def test_a_step_in_between_does_not_make_up_for_one_that_serves_nobody(server, become, monkeypatch):
    ours = list(connect._MIGRATIONS)  # noqa: SLF001
    become(
        Migration(OURS + 1, "plain", REMOVING.text), Migration(OURS + 2, "colour", f"-- serves: {OURS}\nselect 1;\n")
    )
    PostgresStore(server.url).migrate().run()
    monkeypatch.setattr(connect, "_MIGRATIONS", ours)
    with pytest.raises(SchemaMismatch, match="upgrade Drumline"):
        PostgresStore(server.url).now().run()
