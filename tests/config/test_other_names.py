"""Settings under the names that other programs have for them: each block and variable means what ours does."""

from datetime import timedelta

import pytest

from drumline.config import load_settings
from drumline.errors import BadSettings
from drumline.model.options import Backoff

JOBS = """
[jobs]
backend = "local" # local | redis
workers = 2
max_attempts = 5
initial_backoff_ms = 250
[jobs.redis]
url = "redis://127.0.0.1/"
key_prefix = "autumn:jobs"
visibility_timeout_ms = 30000
"""
SCHEDULER = """
[database]
url = "postgres://postgres:postgres@db:5432/app"

[scheduler]
backend = "postgres"
lease_ttl_secs = 300
key_prefix = "myapp:scheduler"
"""
VARIABLES = {
    "DRUMLINE_SCHEDULER__BACKEND": "postgres",
    "DRUMLINE_SCHEDULER__LEASE_TTL_SECS": "300",
    "DRUMLINE_SCHEDULER__KEY_PREFIX": "myapp:scheduler",
    "DRUMLINE_SCHEDULER__REPLICA_ID": "web-1",
}


@pytest.fixture
def load(tmp_path):
    def load(toml="", code=None, **variables):
        (tmp_path / "drumline.toml").write_text(toml)
        environ = {f"DRUMLINE_{name}": value for name, value in variables.items()}
        return load_settings(code, folder=tmp_path, environ=environ)

    return load


def test_the_block_of_local_jobs_is_a_sqlite_file(load):
    configuration = load(JOBS)
    settings = configuration.settings
    assert settings.store.url == "sqlite:///drumline.db"
    assert settings.worker.concurrency == 2
    assert settings.jobs.options.max_attempts == 5
    assert settings.jobs.options.backoff == Backoff(initial=timedelta(milliseconds=250))
    assert settings.jobs.options.lease == timedelta(seconds=30)
    assert settings.store.namespace == "autumn:jobs"
    assert configuration.notes == ()


def test_the_same_block_with_the_backend_redis_is_the_redis_server(load):
    configuration = load(JOBS.replace('"local"', '"redis"'))
    assert configuration.settings.store.url == "redis://127.0.0.1/"
    assert configuration.settings.store.namespace == "autumn:jobs"
    assert configuration.notes == ()


def test_the_block_of_the_scheduler_puts_all_on_the_database(load):
    configuration = load(SCHEDULER)
    settings = configuration.settings
    assert settings.store.url == "postgres://postgres:postgres@db:5432/app"
    assert settings.scheduler.lease_ttl_secs == timedelta(seconds=300)
    assert settings.store.namespace == "myapp_scheduler"
    assert configuration.notes == ()


def test_the_variables_of_the_scheduler_mean_the_same_as_its_block(load):
    variables = {name.removeprefix("DRUMLINE_"): value for name, value in VARIABLES.items()}
    settings = load("", DATABASE__PRIMARY_URL="postgres://db/app", **variables).settings
    assert settings.store.url == "postgres://db/app"
    assert settings.store.namespace == "myapp_scheduler"
    assert settings.scheduler.lease_ttl_secs == timedelta(seconds=300)
    assert settings.scheduler.replica_id == "web-1"


@pytest.mark.parametrize(
    ("variables", "key", "value", "origin"),
    [
        ({"JOBS__WORKERS": "7"}, "worker.concurrency", "7", "DRUMLINE_JOBS__WORKERS"),
        ({"JOBS__MAX_ATTEMPTS": "3"}, "jobs.max_attempts", "3", "DRUMLINE_JOBS__MAX_ATTEMPTS"),
        (
            {"JOBS__REDIS__VISIBILITY_TIMEOUT_MS": "1500"},
            "jobs.lease",
            "1.5s",
            "DRUMLINE_JOBS__REDIS__VISIBILITY_TIMEOUT_MS",
        ),
        ({"JOBS__REDIS__KEY_PREFIX": "a:b"}, "store.namespace", "a:b", "DRUMLINE_JOBS__REDIS__KEY_PREFIX"),
        ({"SCHEDULER__KEY_PREFIX": "a:b"}, "store.namespace", "a:b", "DRUMLINE_SCHEDULER__KEY_PREFIX"),
        ({"SCHEDULER__LEASE_TTL_SECS": "9"}, "scheduler.lease_ttl_secs", "9s", "DRUMLINE_SCHEDULER__LEASE_TTL_SECS"),
        ({"SCHEDULER__REPLICA_ID": "web-1"}, "scheduler.replica_id", "web-1", "DRUMLINE_SCHEDULER__REPLICA_ID"),
        ({"SCHEDULER__BACKEND": "in_process"}, "scheduler.backend", "in_process", "DRUMLINE_SCHEDULER__BACKEND"),
        ({"JOBS__BACKEND": "local"}, "store.url", "sqlite:///drumline.db", "DRUMLINE_JOBS__BACKEND"),
        ({"JOBS__BACKEND": "sqlite"}, "store.url", "sqlite:///drumline.db", "DRUMLINE_JOBS__BACKEND"),
        (
            {"JOBS__BACKEND": "redis", "JOBS__REDIS__URL": "redis://u:secret@h/1"},
            "store.url",
            "redis://u:***@h/1",
            "DRUMLINE_JOBS__REDIS__URL",
        ),
        (
            {"JOBS__BACKEND": "postgres", "DATABASE__URL": "postgres://a", "DATABASE__PRIMARY_URL": "postgres://b"},
            "store.url",
            "postgres://a",
            "DRUMLINE_DATABASE__URL",
        ),
        (
            {"JOBS__BACKEND": "postgres", "DATABASE__PRIMARY_URL": "postgres://b"},
            "store.url",
            "postgres://b",
            "DRUMLINE_DATABASE__PRIMARY_URL",
        ),
    ],
)
def test_each_variable_decides_a_setting_and_is_named_as_its_origin(load, variables, key, value, origin):
    rows = {row[0]: row[1:] for row in load(**variables).rows()}
    assert rows[key] == (value, origin)


def test_a_wait_in_milliseconds_is_the_first_one(load):
    assert load(JOBS__INITIAL_BACKOFF_MS="500").settings.jobs.backoff == Backoff(initial=timedelta(milliseconds=500))


def test_of_a_file_the_key_is_named_too(load):
    configuration = load(JOBS)
    assert configuration.origins["worker.concurrency"] == "drumline.toml (jobs.workers)"
    assert configuration.origins["store.url"] == "drumline.toml (jobs.backend)"


def test_other_names_are_shown_where_they_were_given_and_only_there(load):
    assert [row for row in load(JOBS__WORKERS="7").rows() if row[0] == "jobs.workers"] == [
        ("jobs.workers", "7", "DRUMLINE_JOBS__WORKERS")
    ]
    shown = {row[0] for row in load().rows()}
    assert shown.isdisjoint({"jobs.workers", "database.url", "jobs.redis.url"})
    rows = dict(row[:2] for row in load(DATABASE__URL="postgres://u:secret@h").rows())
    assert rows["database.url"] == "postgres://u:***@h"


def test_the_prefix_of_the_jobs_comes_before_that_of_the_scheduler(load):
    settings = load(JOBS__REDIS__KEY_PREFIX="jobs", SCHEDULER__KEY_PREFIX="ticks").settings
    assert settings.store.namespace == "jobs"


def test_a_prefix_becomes_a_plain_name_on_postgres_only(load):
    on_postgres = load(STORE__URL="postgresql://h", SCHEDULER__KEY_PREFIX="My.app:x-1")
    assert on_postgres.settings.store.namespace == "_y_app_x_1"
    assert load(STORE__URL="redis://h", SCHEDULER__KEY_PREFIX="My.app:x-1").settings.store.namespace == "My.app:x-1"


def test_a_stronger_place_wins_whichever_name_it_has(load):
    file = "[worker]\nconcurrency = 3\n[store]\nnamespace = 'file'\n"
    settings = load(file, JOBS__WORKERS="9", SCHEDULER__KEY_PREFIX="env").settings
    assert (settings.worker.concurrency, settings.store.namespace) == (9, "env")
    settings = load("[jobs]\nworkers = 3", WORKER__CONCURRENCY="9").settings
    assert settings.worker.concurrency == 9
    settings = load("[jobs]\nbackend = 'local'", code={"store.url": "memory://"}).settings
    assert settings.store.url == "memory://"


def test_a_backend_in_the_environment_beats_a_url_in_the_file(load):
    settings = load("[store]\nurl = 'memory://'", JOBS__BACKEND="local").settings
    assert settings.store.url == "sqlite:///drumline.db"


def test_both_names_for_one_thing_in_one_place_are_refused_unless_they_agree(load):
    assert load("[jobs]\nworkers = 3\n[worker]\nconcurrency = 3").settings.worker.concurrency == 3
    with pytest.raises(BadSettings) as caught:
        load("[jobs]\nworkers = 3\n[worker]\nconcurrency = 4")
    assert str(caught.value) == "jobs.workers is another name of worker.concurrency: give one of them, not both"


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"JOBS__BACKEND": "rabbit"}, "DRUMLINE_JOBS__BACKEND: jobs.backend must be 'local', 'sqlite', 'redis' or"),
        ({"JOBS__BACKEND": "redis"}, "jobs.backend is redis, so jobs.redis.url must be given too"),
        (
            {"JOBS__BACKEND": "postgres"},
            "jobs.backend is postgres, so database.url or database.primary_url must be given too",
        ),
        ({"JOBS__WORKERS": "0"}, "DRUMLINE_JOBS__WORKERS: jobs.workers must be greater than or equal to 1, got '0'"),
        ({"JOBS__INITIAL_BACKOFF_MS": "x"}, "DRUMLINE_JOBS__INITIAL_BACKOFF_MS: jobs.initial_backoff_ms must be"),
        (
            {"JOBS__REDIS__URL": "localhost"},
            "DRUMLINE_JOBS__REDIS__URL: jobs.redis.url must be a URL, such as sqlite:///drumline.db, got 'localhost'",
        ),
        ({"JOBS__REDIS__KEY_PREFIX": "a b"}, "DRUMLINE_JOBS__REDIS__KEY_PREFIX: jobs.redis.key_prefix must be 1 to 41"),
        (
            {"JOBS__REDIS__VISIBILITY_TIMEOUT_MS": "5"},
            "DRUMLINE_JOBS__REDIS__VISIBILITY_TIMEOUT_MS: jobs.redis.visibility_timeout_ms must be greater than",
        ),
        ({"DATABASE__URL": "u:secret@h"}, "DRUMLINE_DATABASE__URL: database.url must be a URL, such as"),
        (
            {"JOBS__REDIS__KEYPREFIX": "x"},
            "DRUMLINE_JOBS__REDIS__KEYPREFIX is not a setting; did you mean DRUMLINE_JOBS__REDIS__KEY_PREFIX?",
        ),
        ({"DATABASE__URLL": "x"}, "DRUMLINE_DATABASE__URLL is not a setting; did you mean DRUMLINE_DATABASE__URL?"),
        ({"SCHEDULER__BACKEND": "etcd"}, "DRUMLINE_SCHEDULER__BACKEND: scheduler.backend must be 'store'"),
    ],
)
def test_a_wrong_one_is_refused_in_one_sentence(load, variables, says):
    with pytest.raises(BadSettings) as caught:
        load(**variables)
    assert str(caught.value).startswith(says)
    assert "secret" not in str(caught.value)


def test_a_misspelt_key_deep_in_a_file_is_refused_with_a_suggestion(load):
    with pytest.raises(BadSettings) as caught:
        load('[jobs.redis]\nurll = "redis://h"')
    says = "drumline.toml: jobs.redis.urll is not a setting; did you mean jobs.redis.url?"
    assert str(caught.value) == says
    with pytest.raises(BadSettings, match=r"drumline.toml: jobs.redis must be a table of settings, got 'redis://h'"):
        load('[jobs]\nredis = "redis://h"')


def test_a_scheduler_on_another_store_than_the_jobs_is_one_warning(load):
    (note,) = load("[store]\nurl = 'sqlite:///x.db'\n" + SCHEDULER).notes
    assert note == (
        "scheduler.backend is postgres, but the schedules are held by the store of the jobs, sqlite:///x.db"
    )


def test_a_backend_that_differs_from_the_store_named_beside_it_is_one_warning(load):
    (note,) = load("[store]\nurl = 'memory://'\n[jobs]\nbackend = 'local'").notes
    assert note == "jobs.backend is local, but the store is memory://, as store.url says"


def test_a_store_in_code_that_differs_from_one_that_the_environment_names_otherwise_is_said(load):
    (note, *_) = load(
        code={"store.url": "sqlite:///x.db"}, JOBS__BACKEND="postgres", DATABASE__URL="postgres://u:secret@h"
    ).notes
    assert note == (
        "the store named in code is used, sqlite:///x.db, not that of DRUMLINE_DATABASE__URL, postgres://u:***@h"
    )
