"""How a command reaches the cluster that its options name."""

from typing import Any

from kafka_assignors._cli.arguments import ClusterClient
from kafka_assignors._cluster.admin import Admin
from kafka_assignors._cluster.command_config import read_command_config


def client_settings(client: ClusterClient) -> dict[str, Any]:
    """The settings in the file of `--command-config`, in kafka-python's spelling; none without one.

    Raises:
        CommandConfigError: It cannot be read, or has what cannot be used.
    """
    return {} if client.command_config is None else read_command_config(client.command_config)


def open_admin(client: ClusterClient) -> Admin:
    """A client of the cluster; a context manager.

    Raises:
        CommandConfigError: See `client_settings`.
        ClusterError: No broker answers.
    """
    return Admin(client.bootstrap_servers or [], client_settings(client))
