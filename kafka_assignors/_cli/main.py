"""The command line: what there is to run, and what it was asked to do."""

import argparse
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from types import FrameType
from typing import Final

from kafka_assignors._cli.arguments import Command, gather
from kafka_assignors._cli.demo_parser import add_demo
from kafka_assignors._cli.errors import exit_status
from kafka_assignors._cli.group_parser import add_group
from kafka_assignors._cli.history_parser import add_history
from kafka_assignors._cli.output import Answer
from kafka_assignors._cli.placement_parser import add_placement
from kafka_assignors._cli.plan_parser import add_plan

_EXTRAS: Final = {
    "demo": "demo",
    "history": "history",
    "placement": "placement",
    "group export": "prometheus",
}
"""Commands, or all of one word, and the extra that each needs."""

_AFTER_INTERRUPT: Final = {
    "demo": "; nothing is left running",
    "history capture": "; the same command goes on with the rest",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: The command line without the program's name; that of the process if None.

    Returns:
        The exit status: 0 if all went well, 1 if not, 2 for a wrong command line or file, 130 after Ctrl-C,
        143 after SIGTERM.
    """
    options = _parser().parse_args(arguments)
    command: Command = options.command
    if command.check is not None:
        command.check(command.parser, options)
    del options.command
    with _terminations() as terminated:
        try:
            return _run(command, options)
        except KeyboardInterrupt:
            print(f"interrupted{_AFTER_INTERRUPT.get(command.name, '')}", file=sys.stderr)
            return 128 + (signal.SIGTERM if terminated.is_set() else signal.SIGINT)
        except ImportError as error:
            word = command.name.partition(" ")[0]
            named = command.name if command.name in _EXTRAS else word
            if named not in _EXTRAS:
                raise
            extra = _EXTRAS[named]
            needs = (
                f"needs {error.name}" if isinstance(error, ModuleNotFoundError) else f"cannot run: {error}"
            )
            print(f"kafka-assignors {named} {needs}: pip install 'kafka-assignors[{extra}]'", file=sys.stderr)
            return 1


@contextmanager
def _terminations() -> Iterator[threading.Event]:
    """Whether there was a SIGTERM, which does what Ctrl-C would do at that moment.

    Only the first does: `timeout` sends two, and the second must not interrupt the clean-up.
    """
    seen = threading.Event()

    def terminate(number: int, frame: FrameType | None) -> None:
        if seen.is_set():
            return
        seen.set()
        interrupt = signal.getsignal(signal.SIGINT)  # a command may have a handler of its own, and Spark has
        if not callable(interrupt):  # Ctrl-C is ignored, as in the background of a script
            raise KeyboardInterrupt
        interrupt(number, frame)

    main_thread = threading.current_thread() is threading.main_thread()
    if not main_thread or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield seen  # what SIGTERM does here is for others to say
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(command: Command, options: argparse.Namespace) -> int:
    """Call the command's function, and print what it answers if it did not do so itself."""
    name, _, function = command.run.partition(":")
    module = import_module(f"kafka_assignors._cli.{name}")
    wanted = gather(options)
    as_json = wanted.pop("json", False)

    def work() -> int:
        answer = getattr(module, function)(**wanted)
        if isinstance(answer, Answer):
            answer.show(as_json=as_json)
        return answer.status if isinstance(answer, Answer) else int(answer)

    return exit_status(command.name, work, module.ERRORS)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafka-assignors",
        description="Partition assignors for kafka-python consumer groups.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('kafka-assignors')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in (add_demo, add_plan, add_group, add_placement, add_history):
        add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
