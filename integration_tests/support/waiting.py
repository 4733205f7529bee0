"""Waiting for what sends no word of itself, and having leaders wait."""

import threading
from collections.abc import Callable

import psutil

from kafka_assignors import Group, Plan
from kafka_assignors.planners import plan_exact
from kafka_assignors.testing._brokers.waiting import wait_until
from tests.support.scale import longer


def wait_for(what: str, done: Callable[[], object], seconds: float) -> None:
    """Wait until something is done; fail if it is not in so many seconds of an idle machine."""
    wait_until(lambda: [] if done() else ["not yet"], longer(seconds), what)


def has_ended(pid: int) -> bool:
    """Whether a process is no more; a zombie has ended, whenever its parent will notice."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


class Gate:
    """Has leaders wait before they plan, while it is shut: the group is in CompletingRebalance meanwhile."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._open.set()
        self.shut, self.open = self._open.clear, self._open.set

    def planner(self, group: Group) -> Plan:
        self._open.wait(longer(120))
        return plan_exact(group)
