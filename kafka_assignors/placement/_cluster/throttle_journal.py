"""What a throttled reassignment has replaced on a cluster, in a file that outlives a killed run."""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from filelock import FileLock, Timeout
from platformdirs import user_state_path

from kafka_assignors.placement._placement import PlacementError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_SAFE: Final = re.compile(r"[^A-Za-z0-9_-]")


class RunsTogetherError(PlacementError):
    """Another run has its throttle on the cluster."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """What was there before, and what was set instead.

    Attributes:
        brokers: Broker -> name -> the rate before, None without one, and the rates that runs have set.
        topics: Topic -> name -> whether its list was set before, and the entries that runs have added.
    """

    brokers: dict[int, dict[str, tuple[int | None, list[int]]]]
    topics: dict[str, dict[str, tuple[bool, list[str]]]]

    def add_rate(self, broker: int, name: str, *, before: int | None, ours: int) -> None:
        """Note a rate that is to be set. What an earlier run has set was not there before."""
        rates = self.brokers.setdefault(broker, {})
        first, set_by_runs = rates.get(name, (before, []))
        if before not in {first, *set_by_runs}:
            first = before  # set by somebody else since
        rates[name] = first, [*dict.fromkeys([*set_by_runs, ours])]

    def add_replicas(
        self, topic: str, name: str, *, before: Sequence[str] | None, ours: Sequence[str]
    ) -> None:
        """Note entries that are to be added to a list; those that it has are not ours."""
        lists = self.topics.setdefault(topic, {})
        was_set, added = lists.get(name, (before is not None, []))
        new = [entry for entry in ours if entry not in (before or [])]
        lists[name] = was_set, [*dict.fromkeys([*added, *new])]

    def forget(self, resource: int | str) -> list[str]:
        """Remove what is put back; returns nothing that is left."""
        self.brokers.pop(resource, None) if isinstance(resource, int) else self.topics.pop(resource, None)
        return []


class ThrottleJournal:
    """The file of a cluster.

    Args:
        cluster: The cluster's id.
        folder: Where the file is; see `state_folder`.
    """

    def __init__(self, cluster: str, folder: Path | None = None) -> None:
        self.path = (folder or state_folder()) / f"throttle-{_SAFE.sub('_', cluster)}.json"

    @property
    def exists(self) -> bool:
        """Whether a run has left something, or has a throttle now."""
        return self.path.exists()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While nobody else on this machine has a throttle on the cluster.

        Raises:
            RunsTogetherError: Somebody has.
            PlacementError: The file cannot be written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            held = FileLock(self.path.with_suffix(".lock")).acquire(timeout=0)
        except Timeout as error:
            raise RunsTogetherError(
                "another run on this machine reassigns partitions of this cluster under a throttle: wait for"
                " its end"
            ) from error
        except OSError as error:
            raise self._unusable(error) from error
        with held:
            yield

    def load(self) -> Replaced:
        """What runs have replaced and not yet put back.

        Raises:
            PlacementError: The file cannot be read.
        """
        try:
            document = json.loads(self.path.read_text(encoding="utf-8"))
            return _parse(document)
        except FileNotFoundError:
            return Replaced({}, {})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise PlacementError(
                f"{self.path} does not say what a throttle has replaced ({error!r}): remove the file, and see"
                " with `reassign --verify` which throttles there are"
            ) from error

    def store(self, replaced: Replaced) -> None:
        """Write it, on the disk on return; no file if there is nothing.

        Raises:
            PlacementError: It cannot be written.
        """
        try:
            if not replaced.brokers and not replaced.topics:
                self.path.unlink(missing_ok=True)
                return
            fresh = self.path.with_suffix(".new")
            with fresh.open("w", encoding="utf-8") as file:
                json.dump({"brokers": replaced.brokers, "topics": replaced.topics}, file)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self.path)
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> PlacementError:
        return PlacementError(
            f"cannot keep in {self.path} what the throttle replaces: {error}; set XDG_STATE_HOME to a folder"
            " that can be written"
        )


def state_folder() -> Path:
    """The user's state folder of the platform, which need not exist.

    On Linux it is ``$XDG_STATE_HOME/kafka-assignors``, else ``~/.local/state/kafka-assignors``.
    """
    return user_state_path("kafka-assignors", appauthor=False)


def _parse(document: Any) -> Replaced:
    return Replaced(
        {
            int(broker): {name: (before, [*ours]) for name, (before, ours) in rates.items()}
            for broker, rates in document["brokers"].items()
        },
        {
            topic: {name: (was_set, [*ours]) for name, (was_set, ours) in lists.items()}
            for topic, lists in document["topics"].items()
        },
    )
