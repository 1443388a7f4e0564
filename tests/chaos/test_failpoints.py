"""A crash at every named place, on every store: what it leaves is put right by the next replica, and nothing more."""

import ast
import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

import drumline
from drumline import Drumline
from drumline.chaos.check import Evidence, check
from drumline.chaos.ledger import Ledger
from drumline.chaos.program import declare
from drumline.chaos.read import read_evidence
from drumline.clock import fresh_id
from drumline.errors import BadSettings
from drumline.failpoint import NAMES, VARIABLE, read_choice
from drumline.model.claim import ANY_QUEUE, Share
from drumline.model.replica import Role
from tests.chaos import victim
from tests.end_to_end.homes import HOMES, Home

ROOT = Path(__file__).parents[2]
# A store's commits are alike in the code, and not in what they commit: one of the first, and one amid the work.
TURNS = {name: (2, 9) if name.startswith("store.") else (1,) for name in NAMES}
CASES = [f"{name}:{turn}" for name, turns in TURNS.items() for turn in turns]
AT_ONCE = 4


class Case:
    """One victim, in a store of its own."""

    def __init__(self, folder: Path, home: Home, point: str) -> None:
        self.folder, self.home, self.point = folder, home, point
        self.ledger = folder / "ledger"
        (folder / "accepted").touch()

    def play(self) -> tuple[int, Evidence]:
        """Let the victim die, beside a replica that died before and left claims, and another one put it right."""
        asyncio.run(self._leave_claims())
        return self._kill(), asyncio.run(self._recover())

    def _kill(self) -> int:
        """What the victim died of."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("DRUMLINE_")}
        settings = {VARIABLE: self.point, victim.FOLDER: str(self.folder), "PYTHONPATH": str(ROOT)}
        with (self.folder / "log").open("wb") as log:
            return subprocess.run(
                [sys.executable, "-m", victim.__name__],
                env={**kept, **self.home.settings, **settings},
                stdout=log,
                stderr=log,
                check=False,
                timeout=50,
            ).returncode

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def _open(self) -> tuple[Drumline, list[str]]:
        drum = Drumline(self.home.url, namespace=self.home.namespace)
        tasks = declare(drum, Ledger(self.ledger), victim.LEASE)
        return drum, [task.name for task in tasks]

    async def _leave_claims(self) -> None:
        drum, names = self._open()
        quick = drum.find_task("quick")
        async with drum:
            handles = await drum.enqueue_many([quick.call() for _ in range(3)])
            store = await drum.store()
            await store.claim("ghost", [Share(ANY_QUEUE, 3)], 3, names, fresh_id())
        (self.folder / "accepted").write_text("".join(f"{handle.id}\n" for handle in handles))

    async def _recover(self) -> Evidence:
        drum, _ = self._open()
        async with drum:
            await drum.run(drain=True, until=asyncio.Event())
            # Once more, and without firing: a tick may have come at the very end.
            await drum.run(drain=True, until=asyncio.Event(), role=Role.WORKER)
            return await read_evidence(drum, self.ledger, (self.folder / "accepted").read_text().split())


@pytest.fixture(scope="module", params=list(HOMES))
def dying(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, tuple[Case, Future[tuple[int, Evidence]]]]]:
    """All victims of one store, a few at a time."""
    cases = {}
    for point in CASES:
        folder = tmp_path_factory.mktemp("victim")
        cases[point] = Case(folder, HOMES[request.param](folder), point)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {point: (case, pool.submit(case.play)) for point, case in cases.items()}


@pytest.mark.crash
@pytest.mark.timeout(300)
@pytest.mark.parametrize("point", CASES)
def test_a_crash_breaks_no_promise(dying, point):
    case, played = dying[point]
    death, evidence = played.result()
    assert death == -signal.SIGKILL, f"the victim did not come to {point}: {case.log()}"
    assert check(evidence) == []
    assert len(evidence.accepted) in (3, 3 + 14)


def test_every_place_in_the_code_is_named_and_every_name_is_a_place():
    package = Path(drumline.__file__).parent
    places = [place for path in sorted(package.rglob("*.py")) for place in find_places(path)]
    assert set(places) == set(NAMES)


def find_places(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(func=ast.Name(id="failpoint" | "failpoint_before"), args=[ast.Constant(value=str(name)), *_]):
                yield name


@pytest.mark.parametrize("given", ["nowhere", "claim.before:soon", ":1"])
def test_a_place_that_does_not_exist_is_refused(given):
    with pytest.raises(BadSettings, match=VARIABLE):
        read_choice(given)
