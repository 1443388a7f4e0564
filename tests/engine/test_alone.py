"""In a process of its own, since the settings are the whole process's."""

import subprocess
import sys

import pytest

ALONE = """
import gc
from drumline.engine.alone import run_alone

async def work():
    return gc.get_freeze_count(), gc.get_threshold()[0]

before = gc.get_threshold()[0]
frozen, after = run_alone(work())
print(frozen > 1000, after > before, gc.isenabled())
"""


def test_a_process_of_ours_leaves_what_its_start_made_out_of_garbage_collection():
    told = subprocess.run([sys.executable, "-c", ALONE], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert told.split() == ["True", "True", "True"]


TURN = """
import sys
from drumline.engine.alone import run_alone

async def look():
    return sys.getswitchinterval()

before = sys.getswitchinterval()
print(run_alone(look()) <= before / 5)
"""


def test_in_a_process_of_ours_no_thread_waits_long_for_the_event_loop_to_let_it_go_on():
    told = subprocess.run([sys.executable, "-c", TURN], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert told.split() == ["True"]


LOOP = """
import asyncio
import sys

async def look():
    return type(asyncio.get_running_loop()).__module__.partition(".")[0]

if sys.argv[1] == "without":
    sys.modules["uvloop"] = None
from drumline.engine.alone import run_alone

print(run_alone(look()), asyncio.run(look()))
"""


@pytest.mark.parametrize(("uvloop", "alone"), [("with", "uvloop"), ("without", "asyncio")])
def test_a_process_of_ours_runs_on_uvloop_where_it_is_installed_and_leaves_other_loops_as_they_are(uvloop, alone):
    command = [sys.executable, "-c", LOOP, uvloop]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    assert told.split() == [alone, "asyncio"]
