"""The units of systemd: what they start is a command that exists, and it has the time to drain."""

import os
import shlex
import shutil
import subprocess

import pytest

from tests.examples.manifests import read_seconds, read_unit
from tests.examples.stage import BIN, EXAMPLES
from tests.house.test_documents import refuse_command

UNITS = sorted((EXAMPLES / "deploy" / "systemd").glob("*.service"))
PROGRAM = "/opt/shop/venv/bin/drumline"

over_units = pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)


@over_units
def test_a_unit_starts_a_command_that_exists(path):
    program, *words = shlex.split(read_unit(path)["Service"]["ExecStart"])
    assert program == PROGRAM
    assert refuse_command(tuple(words)) is None


@over_units
def test_a_unit_has_longer_than_it_takes_to_drain(path):
    service = read_unit(path)["Service"]
    name, _, drain = service["Environment"].partition("=")
    assert name == "DRUMLINE_WORKER__SHUTDOWN_TIMEOUT"
    assert read_seconds(service["TimeoutStopSec"]) > read_seconds(drain) + 5


@over_units
def test_a_unit_lets_the_main_process_drain_and_does_not_repeat_bad_settings(path):
    service = read_unit(path)["Service"]
    assert (service["KillMode"], service["Restart"]) == ("mixed", "on-failure")
    assert service["RestartPreventExitStatus"] == "2"
    assert service["User"] != "root"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="only where there is a systemd to ask")
@over_units
def test_systemd_finds_no_fault_in_a_unit(path, tmp_path):
    # What it names has to be there, and that is elsewhere on this machine.
    text = path.read_text().replace(PROGRAM, str(BIN / "drumline")).replace("/opt/shop", str(tmp_path))
    copy = tmp_path / path.name
    copy.write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)],
        env={**os.environ, "SYSTEMD_LOG_LEVEL": "warning"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert path.name.partition("@")[0] not in done.stderr
    assert done.returncode == 0, done.stderr
