import itertools
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from drumline.model.claim import ANY_QUEUE, Claim, Share
from drumline.model.job import NewJob
from drumline.model.outcome import Outcome
from drumline.model.query import Command, CommandKind, Keep, PauseKind
from drumline.model.replica import ReplicaState, Role
from drumline.model.schedule import Decision, Firing, Rule
from tests.support import build
from tests.support.build import BY, numbered_id
from tests.support.makers import Maker
from tests.support.twins import Twins, by_id

TASKS = ["a", "b"]
QUEUES = ["q", "p", "@x"]
REPLICAS = ["r1:1", "r1:2", "r2:1"]
SCHEDULES = ["s", "t"]
WINDOWS: list[str | float] = ["unfinished", "pending", 50]
OVERLAPS = ["allow", "skip", "queue_one", "cancel_running"]

pick = st.integers(0, 10_000)
unique_keys = st.builds(
    build.unique, st.sampled_from(["k", "l"]), st.sampled_from(WINDOWS), st.sampled_from(["skip", "replace", "raise"])
)
job_fields = st.fixed_dictionaries(
    {
        "task": st.sampled_from(TASKS),
        "queue": st.sampled_from(["q", "q", *QUEUES]),
        "key": st.none() | st.none() | unique_keys,
        "delay": st.sampled_from([None, None, None, 0, 5, 60]),
        "priority": st.integers(-1, 1),
        "retention": st.sampled_from([0, 100]),
        "lease": st.sampled_from([5, 30]),
        "args": st.sampled_from([b"[]", b"[1]"]),
        "tags": st.sampled_from([(), ("t",)]),
    }
)
shares = st.lists(
    st.builds(Share, st.sampled_from([*QUEUES, ANY_QUEUE]), st.integers(0, 4)), max_size=3, unique_by=lambda s: s.queue
)
fates = st.sampled_from([build.done, build.dead, build.cancelled, build.retry, build.release])
starts = st.sampled_from([None, None, 0, 5, 60])
steps = st.sampled_from([0.001, 1, 5, 5, 29.999, 30, 61, 3600, 90_000, -7])


class Players(RuleBasedStateMachine):
    """Whatever a fleet may do to a store, in any order, done to both twins."""

    maker: Maker
    # Where each life gets a folder of its own.
    root: Path

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=self.root))
        self.twins = Twins(self.maker, self.folder)
        self.numbers = itertools.count(1)
        self.ids: list[str] = []
        self.jobs: list[NewJob] = []
        self.claims: list[Claim] = []
        self.tokens: list[tuple[str, Any]] = []
        self.outcomes: list[Outcome] = []
        self.commands: list[Command] = []

    def teardown(self) -> None:
        self.twins.close()
        shutil.rmtree(self.folder)

    def fresh(self) -> str:
        return numbered_id(next(self.numbers))

    def fresh_job(self) -> str:
        self.ids.append(self.fresh())
        return self.ids[-1]

    @invariant()
    def both_show_the_same(self) -> None:
        self.twins.compare()

    # Produce and consume.

    @initialize(
        given=st.lists(job_fields, max_size=3),
        window=st.sampled_from(WINDOWS),
        overlap=st.sampled_from(OVERLAPS),
        busy=st.booleans(),
    )
    def begin(self, given, window, overlap, busy):
        self.enqueue([{}, {"key": build.unique("k", window)}, *given])
        schedules = [build.new_schedule("s", "a", overlap=overlap), build.new_schedule("t", "a", in_code=False)]
        self.twins.do(lambda store: store.declare(schedules, by=BY))
        if busy:
            self.fire([("s", -6, Decision.FIRED, None)], REPLICAS[0])
            self.take(REPLICAS[0], [Share("default", 2)], 2, TASKS)

    def enqueue(self, given):
        jobs = [build.new_job(**{"id": self.fresh_job(), "task": "a", **fields}) for fields in given]
        self.jobs += jobs
        self.twins.do(lambda store: store.enqueue(jobs))

    @rule(given=st.lists(job_fields, min_size=1, max_size=3))
    def enqueue_new_jobs(self, given):
        self.enqueue(given)

    @rule(
        replica=st.sampled_from(REPLICAS),
        queues=shares | st.just([Share(ANY_QUEUE, 9), Share("@x", 9)]),
        limit=st.integers(1, 5),
        tasks=st.sampled_from([TASKS, ["a"], TASKS]),
    )
    def claim(self, replica, queues, limit, tasks):
        self.take(replica, queues, limit, tasks)

    def take(self, replica, queues, limit, tasks):
        token = self.fresh()
        claimed = self.twins.do(lambda store: store.claim(replica, queues, limit, tasks, token))
        if claimed is None or not claimed.claims:
            return []
        self.claims += claimed.claims
        self.tokens.append((token, (replica, queues, limit, tasks, self.twins.now())))
        return claimed.claims

    @precondition(lambda self: self.claims)
    @rule(
        which=st.lists(pick, min_size=1, max_size=3),
        lines=st.lists(st.integers(1, 4), max_size=3),
        progress=st.sampled_from([None, 0.0, 0.5]),
        user_error=st.sampled_from([None, "sorry"]),
    )
    def report(self, which, lines, progress, user_error):
        claims = [self.claims[number % len(self.claims)] for number in which]
        notes = [
            build.note(
                claim, *(build.line(claim, number) for number in lines), progress=progress, user_error=user_error
            )
            for claim in claims
        ]
        self.twins.do(lambda store: store.report(notes))

    @precondition(lambda self: self.claims)
    @rule(given=st.lists(st.tuples(pick, fates, starts, st.sampled_from([None, "rescuer"])), min_size=1, max_size=4))
    def finish(self, given):
        # Mostly newer claims: the older ones have ended long ago.
        newer = self.claims[-6:]
        self.finish_as([self.decide(newer[which % len(newer)], fate, start, by) for which, fate, start, by in given])

    @rule(replica=st.sampled_from(REPLICAS), fate=fates, start=st.sampled_from([None, 0]))
    def work(self, replica, fate, start):
        claims = self.take(replica, [Share(ANY_QUEUE, 1)], 1, TASKS)
        self.finish_as([self.decide(claim, fate, start, None) for claim in claims])

    @precondition(lambda self: self.claims)
    @rule(which=pick, fate=fates, start=starts, replica=st.sampled_from(REPLICAS))
    def rescue_and_wake_up_too_late(self, which, fate, start, replica):
        """A rescuer gives a running job to others, and then its first worker wakes up."""
        fences = {job.id: job.fence for job in self.twins.running(tuple({claim.id: None for claim in self.claims}))}
        held = [claim for claim in self.claims if fences.get(claim.id) == claim.fence]
        if held:
            late = held[which % len(held)]
            self.finish_as([self.decide(late, build.release, None, "rescuer")])
            self.take(replica, [Share(late.queue, 5)], 5, TASKS)
            self.finish_as([self.decide(late, fate, start, None)])

    def finish_as(self, outcomes):
        self.outcomes += outcomes
        self.twins.do(lambda store: store.finish(outcomes))

    def decide(self, claim, fate, start, by):
        ran = max((self.twins.now() - claim.claimed_at).total_seconds(), 0)
        waits = {"delay": start} if fate in (build.retry, build.release) else {}
        return fate(claim, by=by, ran=ran, **waits)

    @rule(
        replica=st.sampled_from(REPLICAS),
        which=st.lists(pick, max_size=4),
        state=st.sampled_from([ReplicaState.RUNNING, ReplicaState.RUNNING, ReplicaState.DRAINING, ReplicaState.GONE]),
        role=st.sampled_from(list(Role)),
        schedules=st.sampled_from([(), ("s",), ("s", "t")]),
    )
    def beat(self, replica, which, state, role, schedules):
        mine = [claim for claim in self.claims if claim.replica == replica]
        held = list({mine[number % len(mine)].ref for number in which}) if mine else []
        info = build.replica_info(replica, state=state, role=role, schedules=schedules)
        self.twins.beat(lambda store: store.beat(info, held))

    @rule(which=st.lists(pick, min_size=1, max_size=3))
    def repeat_after_a_lost_reply(self, which):
        """One kind of step again, as it was: each is safe to repeat."""
        again: dict[str, list[Any]] = {
            "enqueue": self.jobs,
            "claim": self.tokens,
            "finish": self.outcomes,
            "command": self.commands,
        }
        kinds = sorted(kind for kind, steps in again.items() if steps)
        kind = kinds[which[0] % len(kinds)]
        getattr(self, f"{kind}_again")([again[kind][number // len(kinds) % len(again[kind])] for number in which])

    def enqueue_again(self, jobs):
        self.twins.do(lambda store: store.enqueue(jobs))

    def claim_again(self, tokens):
        for token, (replica, queues, limit, tasks, then) in tokens:
            # A token is good for a minute.
            if abs((self.twins.now() - then).total_seconds()) < 60:
                self.twins.do(
                    lambda store: store.claim(replica, queues, limit, tasks, token),  # noqa: B023 - run at once
                    lambda claimed: by_id(claimed.claims),
                )

    def finish_again(self, outcomes):
        self.twins.do(lambda store: store.finish(outcomes))

    def command_again(self, commands):
        for command in commands:
            self.twins.do(lambda store: store.command(command))  # noqa: B023 - run at once

    # Schedule.

    @rule(
        name=st.sampled_from(SCHEDULES),
        overlap=st.sampled_from(OVERLAPS),
        every=st.sampled_from([60, 300]),
        in_code=st.booleans(),
        paused=st.booleans(),
        withdrawn=st.sampled_from([False, False, True]),
    )
    def declare_or_withdraw(self, name, overlap, every, in_code, paused, withdrawn):
        if withdrawn:
            self.twins.do(lambda store: store.withdraw([name, "nobody"], by=BY))
            return
        every_so_often = Rule(every=timedelta(seconds=every))
        schedule = build.new_schedule(
            name, "a", overlap=overlap, rule=every_so_often, in_code=in_code, paused=paused and every == 300
        )
        self.twins.do(lambda store: store.declare([schedule], by=BY))

    @rule(
        given=st.lists(
            st.tuples(
                st.sampled_from(["s", "s", "s", "t", "nobody"]),
                st.integers(-5, 5),
                st.sampled_from([*[Decision.FIRED] * 5, Decision.MISSED, Decision.TRIGGER, Decision.ORPHANED]),
                starts,
            ),
            min_size=1,
            max_size=3,
        ),
        by=st.sampled_from(REPLICAS),
    )
    def fire(self, given, by):
        firings = [self.propose(*one) for one in given]
        self.twins.do(lambda store: store.fire(firings, by=by))

    def propose(self, schedule, minute, decision, start) -> Firing:
        instant = (self.twins.now() + timedelta(minutes=minute)).replace(second=0, microsecond=0)
        if decision in (Decision.MISSED, Decision.ORPHANED):
            return build.tick_without_job(instant, decision, schedule)
        if decision is Decision.TRIGGER:
            return build.trigger(instant, schedule, task="a", id=self.fresh_job())
        return build.tick_at(instant, schedule, task="a", id=self.fresh_job(), delay=start)

    # Operate.

    @rule(
        kind=st.sampled_from(list(PauseKind)),
        names=st.lists(st.sampled_from(["q", "s", "t"]), min_size=1, max_size=2, unique=True),
        paused=st.booleans(),
    )
    def pause(self, kind, names, paused):
        token = self.fresh()
        for _ in range(2):
            self.twins.do(lambda store: store.pause(kind, names, paused=paused, by=BY, token=token))

    @rule(
        kind=st.sampled_from([CommandKind.CANCEL, CommandKind.RETRY, *CommandKind]),
        which=st.lists(pick, min_size=1, max_size=3, unique=True),
        start=starts,
        running=st.booleans(),
    )
    def command(self, kind, which, start, running):
        known = ([claim.id for claim in self.claims[-4:]] if running else []) or self.ids
        ids = tuple({known[number % len(known)]: None for number in which})
        when = None if start is None else timedelta(seconds=start)
        command = Command(id=self.fresh(), kind=kind, ids=ids, by=BY, start=when)
        self.commands.append(command)
        self.twins.do(lambda store: store.command(command))

    @rule(days=st.sampled_from([0, 0.5, 30]), newest=st.sampled_from([0, 2, 1000]))
    def purge(self, days, newest):
        kept = timedelta(days=days)
        self.twins.purge(Keep(ticks=kept, newest_ticks=newest, audit=kept, series=kept, replicas=kept))

    @rule(seconds=steps)
    def let_time_pass(self, seconds):
        self.twins.move(seconds)


def play(maker: Maker, folder: Path, how: settings) -> None:
    class PlayersHere(Players):
        pass

    PlayersHere.maker, PlayersHere.root = maker, folder
    run_state_machine_as_test(PlayersHere, settings=how)


QUICK = settings(
    max_examples=80,
    stateful_step_count=40,
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
LONG = settings(
    QUICK, max_examples=2000, stateful_step_count=60, derandomize=False, phases=[Phase.generate, Phase.shrink]
)


# To find the smallest counter-example may take longer than a test may.
@pytest.mark.timeout(600)
def test_any_sequence_of_steps_shows_the_same_as_on_the_reference_model(maker, tmp_path):
    play(maker, tmp_path, QUICK)


@pytest.mark.prove
@pytest.mark.timeout(3600)
def test_many_long_sequences_of_steps_show_the_same_as_on_the_reference_model(maker, tmp_path):
    play(maker, tmp_path, LONG)
