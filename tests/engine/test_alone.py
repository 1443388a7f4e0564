"""In a process of its own, since the settings are the whole process's."""

import subprocess
import sys

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
