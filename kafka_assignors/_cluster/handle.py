"""A running cluster as public functions take it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Self

from kafka.errors import KafkaError

from kafka_assignors._cluster.admin import Admin, ClusterError, reason
from kafka_assignors._cluster.command_config import read_command_config


class Cluster:
    """A running cluster, and how to reach it.

    Each function that takes it connects, and closes its connections. As a context manager the cluster is
    connected from the beginning to the end: if no broker answers, that is a ClusterError.

    Args:
        bootstrap_servers: "host:port" each, in a list or with commas between.
        settings: Further settings of kafka-python's clients.
        command_config: A properties file as for `--command-config` of Kafka's own tools. `settings` come
            before it.

    Raises:
        CommandConfigError: The file cannot be read, or has what cannot be used from Python.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        settings: Mapping[str, Any] | None = None,
        *,
        command_config: str | Path | None = None,
    ) -> None:
        servers = bootstrap_servers.split(",") if isinstance(bootstrap_servers, str) else bootstrap_servers
        self.bootstrap_servers = tuple(servers)
        read = {} if command_config is None else read_command_config(Path(command_config))
        self.settings: Mapping[str, Any] = {**read, **(settings or {})}
        self._admin: Admin | None = None
        self._entered = 0  # contexts, of which one may be within another

    def __enter__(self) -> Self:
        if self._admin is None:
            self._admin = Admin(self.bootstrap_servers, self.settings)
        self._entered += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._entered -= 1
        if self._admin is not None and not self._entered:
            admin, self._admin = self._admin, None
            admin.close()

    @contextmanager
    def _connected(self) -> Iterator[Admin]:
        admin = self._admin or Admin(self.bootstrap_servers, self.settings)
        try:
            yield admin
        except KafkaError as error:
            raise ClusterError(reason(error)) from error
        finally:
            if self._admin is not admin:
                admin.close()


def connect(cluster: Cluster) -> AbstractContextManager[Admin]:
    """A context manager: the client of a cluster.

    Raises ClusterError if no broker answers, or one refuses what is asked in the context.
    """
    return cluster._connected()  # noqa: SLF001 - the client is no part of what is public
