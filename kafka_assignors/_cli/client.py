"""How a command reaches the cluster that its options name; see `arguments.add_client`."""

import argparse
from typing import Any

from kafka_assignors._cluster.admin import Admin
from kafka_assignors._cluster.command_config import read_command_config


def client_settings(options: argparse.Namespace) -> dict[str, Any]:
    """The settings in the file of `--command-config`, in kafka-python's spelling; none without one.

    Raises:
        CommandConfigError: It cannot be read, or has what cannot be used.
    """
    return {} if options.command_config is None else read_command_config(options.command_config)


def open_admin(options: argparse.Namespace) -> Admin:
    """A client of the cluster; a context manager.

    Raises:
        CommandConfigError: See `client_settings`.
        ClusterError: No broker answers.
    """
    return Admin(options.bootstrap_servers.split(","), client_settings(options))
