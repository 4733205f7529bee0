"""What is shown of a member's log: the application's first exception, and the end."""

import sysconfig
from pathlib import Path

import kafka_assignors
from kafka_assignors.testing._groups.logs import summary

CLIENT = f"{sysconfig.get_path('purelib')}/kafka/coordinator/consumer.py"
KIT = f"{Path(kafka_assignors.__file__).parent}/testing/_groups/worker.py"
STDLIB = f"{sysconfig.get_path('stdlib')}/threading.py"
OURS = "/srv/billing/listener.py"


def frame(path: str, line: int = 7) -> str:
    return f'  File "{path}", line {line}, in on_partitions_revoked\n    self.commit()\n    ~~~~~~~~~~~^^\n'


def traceback(*frames: str, error: str = "RuntimeError: Cannot block on net.run()") -> str:
    return f"Traceback (most recent call last):\n{''.join(frames)}{error}\n"


def lines(count: int, word: str = "Heartbeat") -> str:
    return "".join(f"{word} {number}\n" for number in range(count))


def test_of_a_log_without_exceptions_the_last_15_lines_are_shown() -> None:
    assert summary(lines(40)) == "\n".join(lines(40).splitlines()[25:])


def test_the_applications_first_exception_stands_before_the_last_lines() -> None:
    log = (
        lines(20)
        + "the listener failed\n"
        + traceback(frame(CLIENT), frame(STDLIB), frame(OURS), frame(CLIENT))
        + lines(30, "Rejoining")
        + traceback(frame(OURS), error="ValueError: another, later")
        + lines(20, "Rejoining")
    )
    assert summary(log) == (
        "the first exception:\n"
        "the listener failed\n"
        "Traceback (most recent call last): [3 frames of libraries left out]\n"
        f"{frame(OURS)}"
        "RuntimeError: Cannot block on net.run()\n"
        "the last 15 lines:\n"
    ) + "\n".join(f"Rejoining {number}" for number in range(5, 20))


def test_an_exception_that_passed_through_the_application_goes_before_an_earlier_one_that_did_not() -> None:
    log = (
        "no broker\n"
        + traceback(frame(CLIENT), error="KafkaConnectionError: refused")
        + "the listener failed\n"
        + traceback(frame(CLIENT), frame(OURS))
        + lines(15)
    )
    shown = summary(log)
    assert "refused" not in shown
    assert "RuntimeError: Cannot block on net.run()" in shown


def test_where_no_exception_passed_through_the_application_the_first_is_shown_whole() -> None:
    first = traceback(frame(KIT), frame(CLIENT), error="KafkaConnectionError: refused")
    log = first + traceback(frame(CLIENT), error="another") + lines(15)
    assert summary(log) == f"the first exception:\n{first}the last 15 lines:\n{lines(15)}".rstrip("\n")


def test_an_exception_among_the_last_lines_with_nothing_to_leave_out_is_not_repeated() -> None:
    log = lines(30) + traceback(frame(OURS), frame(OURS, 9))
    assert summary(log) == "\n".join(log.splitlines()[-15:])


def test_an_exception_that_only_ends_among_the_last_lines_is_shown_whole_before_them() -> None:
    log = "the listener failed\n" + traceback(*[frame(OURS, number) for number in range(6)]) + "leaving\n"
    shown = summary(log)
    assert shown.startswith("the first exception:\nthe listener failed\nTraceback (most recent call last):\n")
    assert shown.count("line 0, in") == 1


def test_a_traceback_that_is_cut_off_is_none() -> None:
    log = lines(20) + traceback(frame(OURS)).partition("RuntimeError")[0]
    assert summary(log) == "\n".join(log.splitlines()[-15:])


def test_what_kafka_python_warns_of_on_a_slow_machine_is_left_out() -> None:
    slow = "kafka.net.selector WARNING Task <x> ran for 0.128s. It is blocking the event loop --"
    assert summary(f"first\n{slow}\nlast\n") == "first\nlast"
