"""A store behind a wire that a test can cut: calls fail, lose their reply, or hang until they are let go."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from drumline.errors import StoreUnreachable
from drumline.stores.base import Op, Store

_FOR_EVER = 10**9


class Hold:
    """Calls of one operation, held up until they are let go."""

    def __init__(self) -> None:
        self.waiting = 0
        self._open = asyncio.Event()
        self._open_for_threads = threading.Event()

    def let_go(self) -> None:
        self._open.set()
        self._open_for_threads.set()

    async def wait(self) -> None:
        self.waiting += 1
        await self._open.wait()

    def wait_in_thread(self) -> None:
        self.waiting += 1
        self._open_for_threads.wait(30)


class Wire:
    """Stands for a store, passes every call on, and remembers it."""

    def __init__(self, store: Store) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self._store = store
        self._failing: Counter[str] = Counter()
        self._deaf: Counter[str] = Counter()
        self._held: dict[str, Hold] = {}
        self._held_back: dict[str, Hold] = {}

    def fail(self, operation: str, times: int = _FOR_EVER) -> None:
        """The next calls do not reach the store."""
        self._failing[operation] = times

    def lose_reply(self, operation: str, times: int = 1) -> None:
        """The next calls are executed, but nobody hears of it."""
        self._deaf[operation] = times

    def mend(self, *operations: str) -> None:
        for operation in operations:
            self._failing.pop(operation, None)

    def hold(self, operation: str) -> Hold:
        """Calls wait before they reach the store."""
        return self._held.setdefault(operation, Hold())

    def hold_reply(self, operation: str) -> Hold:
        """Calls are executed, and their answers wait."""
        return self._held_back.setdefault(operation, Hold())

    def asked(self, operation: str) -> list[tuple[Any, ...]]:
        """What each call of the operation was given."""
        return [given for name, given in self.calls if name == operation]

    def __getattr__(self, name: str) -> Any:
        target = getattr(self._store, name)
        if name in ("batch", "kind", "tells_of_all", "wakeups"):
            return target
        return lambda *given, **named: self._op(name, given, lambda: target(*given, **named))

    def _op(self, name: str, given: tuple[Any, ...], call: Callable[[], Op[Any]]) -> Op[Any]:
        def before() -> None:
            self.calls.append((name, given))
            self._raise_if(self._failing, name)

        def blocking() -> Any:
            before()
            if hold := self._held.get(name):
                hold.wait_in_thread()
            answer = call().run()
            self._raise_if(self._deaf, name)
            return answer

        async def asynchronous() -> Any:
            before()
            if hold := self._held.get(name):
                await hold.wait()
            answer = await call()
            self._raise_if(self._deaf, name)
            if hold := self._held_back.get(name):
                await hold.wait()
            return answer

        return Op(blocking, asynchronous)

    def _raise_if(self, faults: Counter[str], name: str) -> None:
        if faults[name] > 0:
            faults[name] -= 1
            raise StoreUnreachable(f"{name}: the wire is cut")
