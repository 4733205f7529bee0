"""asyncio's event loop in virtual time."""

import asyncio
from asyncio import events
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import Context
from types import FunctionType
from typing import Any, Final, TypeVar, TypeVarTuple

from kafka_assignors.coordinator._simulator.clock import Clock, Timer

_ENDING_STEPS: Final = 100
"""How often tasks that are cancelled may cancel or await others, until all have ended."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class VirtualLoop(asyncio.AbstractEventLoop):
    """The event loop of one process, which may stand still. Code runs in no time, timers by the clock.

    `ran` is called whenever something has run in it. What asyncio reports as heard by nobody, such as
    exceptions of tasks, is in `unheard`.
    """

    def __init__(self, clock: Clock, ran: Callable[[], None]) -> None:
        self.unheard: list[dict[str, Any]] = []
        self._clock = clock
        self._ran = ran
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: dict[asyncio.Handle, Timer] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._frozen = False
        self._ended = False
        self._runs = False
        self._looked = (-1, 0)

    # What happens to the process

    def freeze(self) -> None:
        """Stand still; what is due meanwhile is done after `thaw`."""
        self._frozen = True

    def thaw(self) -> None:
        self._frozen = False
        self._run_ready()

    def end(self) -> None:
        """End all tasks where they are."""
        self._ended = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for _ in range(_ENDING_STEPS):
            if not self._tasks:
                break
            for task in [*self._tasks]:
                task.cancel()
            self._do_all()
        self._ready.clear()

    def do(self, action: Callable[[], object]) -> None:
        """Have something done at once, or when it is thawed."""
        self.call_soon(action)
        self._run_ready()

    def _run_ready(self) -> None:
        if self._frozen or self._ended or self._runs:
            return
        self._do_all()
        self._ran()

    def _do_all(self) -> None:
        outer = events._get_running_loop()
        events._set_running_loop(self)
        self._runs = True
        try:
            while self._ready:
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            self._runs = False
            events._set_running_loop(outer)

    # What asyncio asks of a loop

    def time(self) -> float:
        """Seconds since the beginning; a moment later each time, as no clock stands still for who looks."""
        now, looks = self._looked
        looks = looks + 1 if now == self._clock.now else 0
        self._looked = self._clock.now, looks
        return self._clock.now / 1000 + looks * 1e-8

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """As asyncio's, to the millisecond, and never at once."""
        handle = asyncio.TimerHandle(self.time() + delay, callback, args, self, context)
        if not self._ended:

            def due() -> None:
                self._timers.pop(handle, None)
                self._ready.append(handle)
                self._run_ready()

            self._timers[handle] = self._clock.after(max(1, round(delay * 1000)), due)
        return handle

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_later(when - self.time(), callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.Handle) -> None:
        timer = self._timers.pop(handle, None)
        if timer is not None:
            timer.cancel()

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, **options)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """What a thread would do, done at once."""
        del executor
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whoever awaits it raises it
            done.set_exception(error)
        return done

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self._runs

    def is_closed(self) -> bool:
        """No: what is left when it has ended is never done."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self._ended:
            self.unheard.append(context)


class _LoopTime:
    """The module `time`, for code that runs in a loop."""

    @staticmethod
    def monotonic() -> float:
        return asyncio.get_running_loop().time()


def in_loop_time(function: Any) -> Any:
    """A function that asks the module `time`, with the time of the loop that it runs in."""
    names = {**function.__globals__, "time": _LoopTime}
    made = FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made
