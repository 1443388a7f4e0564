"""A shop with its dashboard, served for real on a port of this machine, in a thread of its own."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import uvicorn

from drumline import Context, Drumline
from drumline.web.access import PrivateAddress
from drumline.web.install import make_own_app
from drumline.web.web import Web

T = TypeVar("T")

BASE = "/admin/jobs"


def make_shop(url: str) -> Drumline:
    drum = Drumline(url)

    @drum.task(queue="mail", max_attempts=2, backoff="1ms")
    async def send_mail(user_id: int, subject: str = "Welcome") -> str:
        return f"sent {subject} to {user_id}"

    @drum.task(max_attempts=1)
    async def fail(ctx: Context, words: str = "boom") -> None:
        ctx.log("about to fail", words=words)
        raise ValueError(words)

    @drum.task(queue="reports")
    async def report(ctx: Context, is_silent: bool = False) -> str:
        """Goes on one step whenever the test lets it; a silent one waits before it tells anything."""
        if is_silent:
            await drum_gate(drum).get()
        for step in (1, 2, 3):
            await ctx.progress(step / 4, f"step {step}")
            ctx.log(f"page {step} written", page=step)
            await drum_gate(drum).get()
        return "written"

    @drum.schedule(every="1h")
    async def tidy() -> None: ...

    return drum


_GATES: WeakKeyDictionary[Drumline, asyncio.Queue[None]] = WeakKeyDictionary()


def drum_gate(drum: Drumline) -> asyncio.Queue[None]:
    return _GATES.setdefault(drum, asyncio.Queue())


class Stage:
    """The server, until it is closed."""

    def __init__(self, url: str = "memory://") -> None:
        self.drum = make_shop(url)
        self.web = Web(self.drum)
        self._auth = PrivateAddress()
        self._door = socket.create_server(("127.0.0.1", 0))
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._leaving = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="stage")
        self._thread.start()
        assert self._started.wait(30)

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._door.getsockname()[1]}"

    @property
    def address(self) -> str:
        """The overview, with the token that lets a browser in."""
        return f"{self.root}{BASE}/?token={self._auth.token}"

    def url(self, path: str) -> str:
        return self.root + BASE + path

    def do(self, work: Callable[[Drumline], Awaitable[T]], patience: float = 30) -> T:
        """What the work gives, done in the server's own thread."""

        async def run() -> T:
            done = await work(self.drum)
            # As if a moment had passed, so that a page that nobody keeps alive shows what came of it.
            self.web.glance.forget()
            return done

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(patience)

    def enqueue(self, task: str, **args: Any) -> str:
        """The id of a new job."""
        return self.do(lambda drum: drum.enqueue(task, **args)).id

    def work_off(self) -> None:
        self.do(lambda drum: drum.run(drain=True, until=asyncio.Event()))

    def start_worker(self) -> Callable[[], None]:
        """A worker that goes on until what is given back is called."""
        leaving = asyncio.Event()
        running = asyncio.run_coroutine_threadsafe(self.drum.run(until=leaving), self._loop)

        def stop() -> None:
            self._loop.call_soon_threadsafe(leaving.set)
            running.result(30)

        return stop

    def step(self) -> None:
        """Let the running report go on."""

        async def let(drum: Drumline) -> None:
            drum_gate(drum).put_nowait(None)

        self.do(let)

    def begin_to_leave(self) -> None:
        """Send every watcher home, as a process does that is asked to stop."""
        self._loop.call_soon_threadsafe(self.web.begin_to_leave)

    def close(self) -> None:
        self.begin_to_leave()
        self._loop.call_soon_threadsafe(self._leaving.set)
        self._thread.join(30)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        app = make_own_app(self.web, self._auth, path=BASE, actuator="/actuator", track="/track")
        config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        serving = asyncio.ensure_future(server.serve(sockets=[self._door]))
        while not server.started:
            await asyncio.sleep(0.01)
        self._started.set()
        await self._leaving.wait()
        server.should_exit = True
        await serving
        await self.drum.close()
