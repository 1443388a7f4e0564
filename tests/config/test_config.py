import subprocess
import sys
from datetime import timedelta

import pytest
from pydantic import ValidationError

from drumline.config import Configuration, load_settings, replica_name
from drumline.errors import BadSettings
from drumline.model.options import Backoff, JobOptions, Retention
from drumline.sealing import generate_key

URL = "DRUMLINE_STORE__URL"


@pytest.fixture
def load(tmp_path):
    """Load settings from code, variables and the text of files, and from nowhere else."""

    def load(code=None, *, environ=None, drumline=None, pyproject=None) -> Configuration:
        for name, text in (("drumline.toml", drumline), ("pyproject.toml", pyproject)):
            if text is not None:
                (tmp_path / name).write_text(text)
        return load_settings(code, folder=tmp_path, environ=environ or {})

    return load


def test_without_any_source_everything_has_its_default(load):
    configuration = load()
    settings = configuration.settings
    assert settings.store.url == "sqlite:///drumline.db"
    assert settings.store.namespace == "drumline"
    assert (settings.store.auto_migrate, settings.store.synchronous) == (True, "full")
    assert not settings.store.allow_network_fs
    assert settings.jobs.options == JobOptions()
    assert settings.worker.queues == ()
    assert (settings.worker.concurrency, settings.worker.threads) == (100, 32)
    assert settings.worker.shutdown_timeout == timedelta(seconds=25)
    assert settings.worker.poll_interval == timedelta(seconds=10)
    assert (settings.scheduler.replica_id, settings.app, settings.imports) == (None, None, ())
    assert (settings.log.level, settings.log.format) == ("info", "text")
    assert configuration.origins == {}
    assert configuration.notes == ()


def test_code_beats_the_environment_and_that_the_file_and_that_the_default(load):
    configuration = load(
        {"store.namespace": "code", "store.url": None},
        environ={"DRUMLINE_STORE__NAMESPACE": "env", URL: "memory://env"},
        drumline='imports = ["a"]\n[store]\nnamespace = "file"\nurl = "memory://file"\nsynchronous = "normal"',
    )
    store = configuration.settings.store
    assert (store.namespace, store.url, store.synchronous, store.auto_migrate) == (
        "code",
        "memory://env",
        "normal",
        True,
    )
    assert configuration.origins == {
        "store.namespace": "code",
        "store.url": URL,
        "store.synchronous": "drumline.toml",
        "imports": "drumline.toml",
    }


def test_a_table_of_pyproject_is_read_where_there_is_no_drumline_toml(load):
    configuration = load(pyproject='[project]\nname = "x"\n[tool.drumline.worker]\nconcurrency = 3')
    assert configuration.settings.worker.concurrency == 3
    assert configuration.origins == {"worker.concurrency": "pyproject.toml"}
    both = load(drumline="[worker]\nthreads = 4")
    assert both.settings.worker.concurrency == 100
    assert both.origins == {"worker.threads": "drumline.toml"}


def test_a_pyproject_without_our_table_sets_nothing(load):
    assert load(pyproject='[project]\nname = "x"').origins == {}


def test_the_process_s_own_environment_and_folder_are_the_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRUMLINE_WORKER__THREADS", "7")
    (tmp_path / "drumline.toml").write_text("[worker]\nconcurrency = 8")
    worker = load_settings().settings.worker
    assert (worker.threads, worker.concurrency) == (7, 8)


@pytest.mark.parametrize(
    ("variable", "value", "section", "key", "expected"),
    [
        ("WORKER__QUEUES", "mail, default", "worker", "queues", ("mail", "default")),
        ("WORKER__SHUTDOWN_TIMEOUT", "1m", "worker", "shutdown_timeout", timedelta(minutes=1)),
        ("WORKER__SHUTDOWN_TIMEOUT", "7.5", "worker", "shutdown_timeout", timedelta(seconds=7.5)),
        ("WORKER__POLL_INTERVAL", "500ms", "worker", "poll_interval", timedelta(milliseconds=500)),
        ("WORKER__CHILDREN", "4", "worker", "children", 4),
        ("WORKER__CHILDREN", "none", "worker", "children", None),
        ("WORKER__TIMEOUT_GRACE", "5", "worker", "timeout_grace", timedelta(seconds=5)),
        ("STORE__AUTO_MIGRATE", "false", "store", "auto_migrate", False),
        ("LOG__LEVEL", "DEBUG", "log", "level", "debug"),
        ("JOBS__TIMEOUT", "30s", "jobs", "timeout", timedelta(seconds=30)),
        ("JOBS__TIMEOUT", "none", "jobs", "timeout", None),
        ("JOBS__BACKOFF", "500ms", "jobs", "backoff", Backoff(timedelta(milliseconds=500))),
        ("JOBS__BACKOFF", "1s,5s", "jobs", "backoff", Backoff(steps=(timedelta(seconds=1), timedelta(seconds=5)))),
        ("JOBS__BACKOFF__CAP", "10s", "jobs", "backoff", Backoff(cap=timedelta(seconds=10))),
        ("JOBS__RETENTION", "1h", "jobs", "retention", Retention.of("1h")),
        ("JOBS__RETENTION__DEAD", "1h", "jobs", "retention", Retention(dead=timedelta(hours=1))),
        ("JOBS__MAX_ATTEMPTS", "", "jobs", "max_attempts", 5),
    ],
)
def test_a_variable_is_text(load, variable, value, section, key, expected):
    settings = load(environ={f"DRUMLINE_{variable}": value}).settings
    assert getattr(getattr(settings, section), key) == expected


def test_app_and_imports_stand_outside_of_sections(load):
    settings = load(
        environ={"DRUMLINE_APP": "shop.jobs:drum", "DRUMLINE_IMPORTS": "shop.a,shop.b", "APP": "x"}
    ).settings
    assert settings.app == "shop.jobs:drum"
    assert settings.imports == ("shop.a", "shop.b")
    assert load({"imports": ["shop.c"]}).settings.imports == ("shop.c",)


def test_a_file_may_write_tables_and_lists(load):
    jobs = load(
        drumline='[worker]\nqueues = ["a", "b"]\n[jobs]\ntimeout = 30\nbackoff = {initial = "1s", jitter = 0}\n'
        'retention = {done = "1h"}\nmax_attempts = 2\nlease = "1m"'
    ).settings.jobs
    assert jobs.options == JobOptions(
        max_attempts=2,
        timeout=timedelta(seconds=30),
        backoff=Backoff(timedelta(seconds=1), jitter=0),
        retention=Retention(done=timedelta(hours=1)),
        lease=timedelta(minutes=1),
    )


@pytest.mark.parametrize(
    ("sources", "says"),
    [
        (
            {"environ": {"DRUMLINE_WORKER__WORKRES": "3"}},
            "DRUMLINE_WORKER__WORKRES is not a setting; did you mean DRUMLINE_WORKER__",
        ),
        ({"environ": {"DRUMLINE_STORE": "x"}}, "DRUMLINE_STORE is not a setting; did you mean DRUMLINE_STORE__URL?"),
        ({"environ": {"drumline_zzz": "x"}}, "drumline_zzz is not a setting"),
        (
            {"drumline": "[worker]\nconcurency = 3"},
            "drumline.toml: worker.concurency is not a setting; did you mean worker.concurrency?",
        ),
        ({"drumline": "[web]\nport = 3"}, "drumline.toml: web.port is not a setting"),
        ({"drumline": "zzz = 3"}, "drumline.toml: zzz is not a setting"),
        (
            {"pyproject": "[tool.drumline.store]\nurll = 3"},
            "pyproject.toml: store.urll is not a setting; did you mean store.url?",
        ),
        ({"code": {"store.nmespace": "x"}}, "code: store.nmespace is not a setting; did you mean store.namespace?"),
    ],
)
def test_an_unknown_key_is_refused_by_name(load, sources, says):
    with pytest.raises(BadSettings) as caught:
        load(**sources)
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize(
    "variable",
    [
        "DRUMLINE_TEST_POSTGRES",
        "DRUMLINE_BENCH_JOBS",
        "DRUMLINE_DEMO_X",
        "DRUMLINE_SERVICE_HOST",
        "DRUMLINE_SERVICE_PORT_HTTP",
        "DRUMLINE_WEB_PORT",
        "DRUMLINE_PORT_8000_TCP_ADDR",
    ],
)
def test_variables_of_others_are_left_alone(load, variable):
    assert load(environ={variable: "x"}).origins == {}


@pytest.mark.parametrize(
    ("sources", "says"),
    [
        (
            {"environ": {"DRUMLINE_WORKER__CONCURRENCY": "many"}},
            "DRUMLINE_WORKER__CONCURRENCY: worker.concurrency must be a valid integer, unable to parse string",
        ),
        (
            {"drumline": "[worker]\nthreads = 0"},
            "drumline.toml: worker.threads must be greater than or equal to 1, got 0",
        ),
        (
            {"drumline": "[worker]\nchildren = 0"},
            "drumline.toml: worker.children must be greater than or equal to 1, got 0",
        ),
        (
            {"environ": {"DRUMLINE_WORKER__POLL_INTERVAL": "0"}},
            "DRUMLINE_WORKER__POLL_INTERVAL: worker.poll_interval must be a duration above zero, got '0'",
        ),
        ({"drumline": '[worker]\nshutdown_timeout = "x"'}, "drumline.toml: worker.shutdown_timeout must be a duration"),
        ({"drumline": "[worker]\nqueues = [1]"}, "drumline.toml: worker.queues must be 1 to 100 letters"),
        ({"drumline": '[worker]\nqueues = ["a b"]'}, "drumline.toml: worker.queues must be 1 to 100 letters"),
        (
            {"environ": {"DRUMLINE_JOBS__MAX_ATTEMPTS": "0"}},
            "DRUMLINE_JOBS__MAX_ATTEMPTS: jobs.max_attempts must be a whole number of 1 or more, got '0'",
        ),
        (
            {"drumline": '[jobs]\nlease = "1ms"'},
            "drumline.toml: jobs.lease must be a duration of 100 ms or more, got '1ms'",
        ),
        (
            {"drumline": "[jobs]\nbackoff = {inital = 1}"},
            "drumline.toml: jobs.backoff must be written with its own fields",
        ),
        ({"drumline": '[jobs]\nretention = {done = "x"}'}, "drumline.toml: jobs.retention must be a duration"),
        ({"drumline": '[log]\nlevel = "loud"'}, "drumline.toml: log.level must be 'debug', 'info'"),
        ({"drumline": "[log]\nlevel = 3"}, "drumline.toml: log.level must be 'debug', 'info'"),
        ({"drumline": '[log]\nformat = "xml"'}, "drumline.toml: log.format must be 'text' or 'json', got 'xml'"),
        ({"drumline": '[store]\nsynchronous = "off"'}, "drumline.toml: store.synchronous must be 'full' or 'normal'"),
        ({"drumline": '[store]\nnamespace = "1 x"'}, "drumline.toml: store.namespace must be 1 to 41 letters"),
        (
            {"drumline": '[scheduler]\nreplica_id = ""'},
            "drumline.toml: scheduler.replica_id String should have at least",
        ),
        ({"environ": {"DRUMLINE_APP": "shop"}}, "DRUMLINE_APP: app must be module:attribute, such as shop.jobs:drum"),
        ({"drumline": "imports = 3"}, "drumline.toml: imports must be a valid tuple, got 3"),
        (
            {"code": {"store.url": "user:secret@host"}},
            "code: store.url must be a URL, such as sqlite:///drumline.db, got 'user:***@host'",
        ),
        ({"drumline": 'store = "x"'}, "drumline.toml: store must be a table of settings, got 'x'"),
        ({"pyproject": "[tool]\ndrumline = 3"}, "pyproject.toml: tool.drumline must be a table of settings, got 3"),
        ({"drumline": "[store"}, "drumline.toml cannot be read: "),
    ],
)
def test_a_wrong_value_is_refused_with_its_key_and_origin(load, sources, says):
    with pytest.raises(BadSettings) as caught:
        load(**sources)
    assert str(caught.value).startswith(says)


def test_a_store_in_code_that_differs_from_the_environment_is_said(load):
    (note,) = load({"store.url": "redis://u:secret@one"}, environ={URL: "redis://u:secret@two"}).notes
    assert note == f"the store named in code is used, redis://u:***@one, not that of {URL}, redis://u:***@two"


@pytest.mark.parametrize(
    ("code", "environ"),
    [({}, {URL: "memory://"}), ({"store.url": "memory://"}, {}), ({"store.url": "a://"}, {URL: "a://"})],
)
def test_one_store_is_nothing_to_speak_of(load, code, environ):
    assert load(code, environ=environ).notes == ()


def test_every_setting_is_shown_with_its_origin_and_without_secrets(load):
    rows = load(
        {"store.url": "redis://u:secret@h/0"},
        environ={"DRUMLINE_WORKER__QUEUES": "a,b", "DRUMLINE_JOBS__RETENTION": "1h", "DRUMLINE_WEB__SECRET": "x" * 16},
        drumline='app = "a:b"',
    ).rows()
    assert [row for row in rows if row[2] != "default"] == [
        ("store.url", "redis://u:***@h/0", "code"),
        ("jobs.retention", "done=3600s dead=3600s cancelled=3600s", "DRUMLINE_JOBS__RETENTION"),
        ("worker.queues", "a,b", "DRUMLINE_WORKER__QUEUES"),
        ("web.secret", "***", "DRUMLINE_WEB__SECRET"),
        ("app", "a:b", "drumline.toml"),
    ]
    assert ("jobs.timeout", "none", "default") in rows
    assert ("store.auto_migrate", "true", "default") in rows
    assert len(rows) == 35


def test_settings_do_not_show_the_store_s_address_and_cannot_be_changed(load):
    settings = load({"store.url": "redis://u:secret@h/0"}).settings
    assert "secret" not in repr(settings)
    with pytest.raises(ValidationError):
        settings.app = "a:b"


@pytest.mark.parametrize(
    ("setting", "environ", "host", "name"),
    [
        ("mine", {"FLY_MACHINE_ID": "148e", "HOSTNAME": "web"}, "host", "mine"),
        (None, {"FLY_MACHINE_ID": "148e", "HOSTNAME": "web"}, "host", "148e"),
        (None, {"RAILWAY_REPLICA_ID": "r1", "HOSTNAME": "web"}, "host", "r1"),
        (None, {"DYNO": "web.1"}, "host", "web.1"),
        (None, {"HOSTNAME": "pod-x2x4z"}, "host", "pod-x2x4z"),
        (None, {"HOSTNAME": ""}, "my host's name!", "my-host-s-name"),
        (None, {"HOSTNAME": "localhost"}, "localhost", "pid-7"),
        (None, {}, "", "pid-7"),
        ("ü/:", {}, "host", "host"),
        (None, {"HOSTNAME": "a" * 50 + "b" * 50}, "host", "a" * 29 + "-" + "b" * 30),
        (None, {"HOSTNAME": "a" * 60}, "host", "a" * 60),
    ],
)
def test_a_replica_is_named_by_setting_platform_host_or_pid(load, setting, environ, host, name):
    settings = load({"scheduler.replica_id": setting}).settings
    assert replica_name(settings, environ, hostname=lambda: host, pid=lambda: 7) == name


def test_pydantic_is_loaded_with_the_settings_only():
    program = "import sys, drumline; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_keys_are_never_shown(load):
    key, older = generate_key(), generate_key()
    configuration = load(environ={"DRUMLINE_ENCRYPTION__KEY": key, "DRUMLINE_ENCRYPTION__OLDER_KEYS": older})
    assert configuration.settings.encryption.older_keys == (older,)
    shown = f"{configuration.rows()} {configuration.settings!r} {configuration.settings}"
    assert ("encryption.key", "***", "DRUMLINE_ENCRYPTION__KEY") in configuration.rows()
    assert key not in shown
    assert older not in shown


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("KEY", "c2hvcnQ-of-a-person", "encryption.key must be a key as `drumline keys generate` prints it"),
        ("OLDER_KEYS", "c2hvcnQ-of-a-person", "encryption.older_keys must be a key as"),
        ("OLDER_KEYS", "A" * 43 + "=", "encryption.older_keys must be left out where encryption.key is not set"),
    ],
)
def test_a_wrong_key_is_refused_without_being_repeated(load, name, value, reason):
    with pytest.raises(BadSettings) as refusal:
        load(environ={f"DRUMLINE_ENCRYPTION__{name}": value})
    assert reason in str(refusal.value)
    assert value not in str(refusal.value)


def test_a_webhook_needs_a_secret_and_shows_neither(load):
    url = "https://hooks.example.com/of-the-path"
    with pytest.raises(BadSettings, match=r"webhook.url must be given together with webhook.secret") as refusal:
        load(drumline=f'[webhook]\nurl = "{url}"')
    assert "of-the-path" not in str(refusal.value)
    configuration = load(drumline=f'[webhook]\nurl = "{url}"\nsecret = "a secret of sixteen"\ntimeout = "3s"')
    assert configuration.settings.webhook.timeout == timedelta(seconds=3)
    shown = f"{configuration.rows()} {configuration.settings!r}"
    assert "of-the-path" not in shown
    assert "a secret of sixteen" not in shown


def test_a_webhook_to_nowhere_is_refused_without_being_repeated(load):
    with pytest.raises(BadSettings, match=r"webhook.url must be an address such as https://") as refusal:
        load(environ={"DRUMLINE_WEBHOOK__URL": "ftp://of-the-path"})
    assert "of-the-path" not in str(refusal.value)
