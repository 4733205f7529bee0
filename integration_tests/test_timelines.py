"""What a user's failed test of a real group reports."""

import html
import re

import pytest

from kafka_assignors.testing import Cluster
from tests.support import plugin

pytest_plugins = ["pytester"]

FIRST_TEST = """
def test_a_crash(consumer_group):
    group = consumer_group(members=2, settings={"session_timeout_ms": 2000})
    group.members["m2"].crash()
    group.wait_stable()
    group.timeline.assert_paused_at_most(MS)
"""


def test_a_users_first_test_passes_or_shows_what_happened(
    pytester: pytest.Pytester, kafka_cluster: Cluster
) -> None:
    pytester.makepyfile(
        test_good=FIRST_TEST.replace("MS", "20_000"), test_bad=FIRST_TEST.replace("MS", "100")
    )
    result = pytester.runpytest_subprocess(
        f"--kafka-bootstrap={','.join(kafka_cluster.bootstrap_servers)}",
        "-rN",  # where CI is set, the summary repeats each failure whole
        *("--kafka-timelines=pictures", "--html=report.html", "--self-contained-html"),
        *plugin.LOADED,
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.re_match_lines(
        [
            r"E +AssertionError: partitions were without an owner for longer than 100 ms:",
            r"E +\d+\.\d{3} m2 +crashed",
            r"-+ timeline of test-a-crash-[0-9a-f]{8} -+",
            r"topic-\w+-0 +[.AB]+",
            r"picture: .*/pictures/test_bad\.py-test_a_crash-test-a-crash-[0-9a-f]{8}\.png",
            r" +\d+ events are shown above",
        ]
    )
    assert len(re.findall(r"\d\.\d{3} m2 +crashed", result.stdout.str())) == 1
    (picture,) = (pytester.path / "pictures").glob("*.png")
    assert picture.stat().st_size > 10_000
    page = html.unescape((pytester.path / "report.html").read_text(encoding="utf-8"))
    assert len(re.findall("data:image/png;base64,", page)) == 1
