"""A program that forks after it has imported its tasks, or used them, as web servers do: all go on by themselves."""

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, os, sys
from drumline import Drumline

drum = Drumline(sys.argv[2], namespace=sys.argv[3])

@drum.task
async def ring(n: int) -> int:
    return n

used = sys.argv[1] == "used"
if used:
    ring.enqueue_sync(0)
children = []
for number in range(1, 4):
    pid = os.fork()
    if pid == 0:
        for _ in range(20):
            ring.enqueue_sync(number)
        asyncio.run(drum.close())
        os._exit(0)
    children.append(pid)
for _ in range(20):
    ring.enqueue_sync(9)
assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
assert drum.sync.counts().ready == 80 + used, drum.sync.counts().total
asyncio.run(drum.run(drain=True))
results = [job.result for job in drum.sync.jobs.find(state="done")]
assert sorted(results) == sorted([0] * used + [1] * 20 + [2] * 20 + [3] * 20 + [9] * 20), results
print("all is well")
"""


@pytest.mark.parametrize("before", ["imported", "used"])
def test_parent_and_children_enqueue_after_a_fork(tmp_path, home, before):
    # Newer Pythons warn of any fork with threads about; that it goes well all the same is what this shows.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAM, before, home.url, home.namespace]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stdout) == (0, "all is well\n"), done.stderr
