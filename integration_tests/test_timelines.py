"""Assertions on timelines of real groups, and what a failed test of one reports."""

import html
import re

import pytest

from integration_tests.support.patience import QUICK, QUICK_MS
from kafka_assignors.testing import Cluster, GroupFactory, Load
from tests.support import plugin

pytest_plugins = ["pytester"]

STICKY = [
    ("kafka-python", "cooperative-sticky"),
    ("confluent-kafka", "cooperative-sticky"),
    ("aiokafka", "sticky"),
    ("java", "cooperative-sticky"),
]


@pytest.mark.parametrize(("client", "strategy"), STICKY)
def test_timelines_of_members_of_every_client_can_be_judged(
    client: str, strategy: str, topic: str, consumer_group: GroupFactory, kafka_cluster: Cluster
) -> None:
    group = consumer_group(topic, [strategy], client=client, settings=QUICK)
    with Load(kafka_cluster.bootstrap_servers, topic) as load:
        for name in "abc":
            group.join(name)
            stable = group.wait_stable()
        group.members["b"].crash()
        group.wait_stable()
        group.wait_consumed(load)
        produced = load.stop()
        group.wait_consumed(load)
    timeline = group.timeline
    assert {name for one in timeline.rebalances for name in one.subscriptions} == set("abc")
    assert {topics for one in timeline.rebalances for topics in one.subscriptions.values()} == {
        frozenset({topic})
    }
    timeline.assert_balanced()
    timeline.assert_balanced(at=stable.generation)
    timeline.assert_sticky()
    timeline.assert_never_owned_twice()
    timeline.assert_never_owned_twice("callback")
    timeline.assert_all_consumed(produced)
    timeline.assert_paused_at_most(3 * QUICK_MS)
    timeline.assert_paused_at_most(3 * QUICK_MS, by="records")
    with pytest.raises(
        AssertionError, match=r"without an owner for longer than 1000 ms:\n(.*\n)+.*b +crashed"
    ):
        timeline.assert_paused_at_most(1000)
    with pytest.raises(AssertionError, match=f"the group rebalanced after generation {stable.generation}"):
        timeline.assert_no_rebalance(after=stable.generation)


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
