"""Those scenarios of Apache Kafka's AbstractStickyAssignorTest that are large, or random.

The others are in tests/unit/planners/test_kafka_abstract_sticky.py, which says what differs. At full scale,
sizes are Kafka's: 1,000,000 partitions and 2,000 members without racks, 100,000 partitions with.
"""

from random import Random

import pytest

from kafka_assignors._model.group import NO_GENERATION
from tests.support.kafka_scenarios import Begin, Story, stories, with_and_without_racks
from tests.support.scale import few, scaled

TOPICS = 50 if few() else 500


def large_story(begin: Begin, topics: int, partitions: int, members: int) -> Story:
    """Numbered topics, fewer where racks are known, and members that subscribe to all of them."""
    count = min(topics, 50) if begin({}).racks == "both" else topics
    story: Story = begin({f"t{number:03}": partitions for number in range(count)})
    everything = frozenset(story.topics)
    for number in range(members):
        story.claim(f"c{number:04}", everything, {}, NO_GENERATION)
    return story


def stays_so_when_a_member_forgets(story: Story) -> None:
    story.claim("c0000", story.members["c0000"].topics, {}, NO_GENERATION)
    before = story.assigned
    story.rebalance(small=False)
    assert story.assigned == before
    assert story.moves == 0


@with_and_without_racks
def test_large_assignment_and_group_with_uniform_subscription(begin: Begin) -> None:
    """1,000,000 partitions for 2,000 members; before the second rebalance one member loses its memory."""
    story = large_story(begin, TOPICS, 2_000, 2_000)
    story.rebalance(small=False)
    assert story.loads == [len(story.topics)] * 2_000
    stays_so_when_a_member_forgets(story)


@with_and_without_racks
def test_large_assignment_and_group_with_non_equal_subscription(begin: Begin) -> None:
    """As the uniform one, but the last member has one topic only: the algorithms for equal ones are out."""
    story = large_story(begin, TOPICS, 2_000, 2_000)
    story.subscribe("c1999", "t000")
    story.rebalance(small=False)
    assert story.loads == [len(story.topics)] * 2_000
    stays_so_when_a_member_forgets(story)


@with_and_without_racks
def test_assignment_and_group_with_non_equal_subscription_not_timeout(begin: Begin) -> None:
    """A fourth of the members has one half of the topics, all others the other half."""
    story = large_story(begin, 100, 200, 500)
    topics = sorted(story.topics)
    halves = topics[: len(topics) // 2], topics[len(topics) // 2 :]
    for number, member in enumerate(sorted(story.members)):
        story.subscribe(member, *halves[bool(number % 4)])
    story.rebalance(small=False)
    of_a_half = len(topics) * 100
    few, extras = divmod(of_a_half, 375)
    assert story.loads == [few] * (375 - extras) + [few + 1] * extras + [of_a_half // 125] * 125
    stays_so_when_a_member_forgets(story)


@stories(racks=("none", "both"))
@pytest.mark.parametrize("seed", range(5))
def test_large_assignment_with_multiple_consumers_leaving_and_random_subscription(
    begin: Begin, seed: int
) -> None:
    rng = Random(seed)
    story: Story = begin({f"t{number:02}": rng.randint(1, 10) for number in range(40)})
    for number in range(200):
        story.join(f"c{number:03}", *rng.choices(sorted(story.topics), k=rng.randrange(20)))
    story.rebalance()
    for number in {rng.randrange(200) for _ in range(50)}:
        story.leave(f"c{number:03}")
    story.rebalance()


@stories(racks=("none",))
@pytest.mark.parametrize("seed", range(scaled(100)))
def test_reassignment_with_random_subscriptions_and_changes(begin: Begin, seed: int) -> None:
    rng = Random(seed)
    story: Story = begin({f"t{number:02}": number + 1 for number in range(rng.randrange(10, 20))})
    topics = sorted(story.topics)
    members = [f"c{number:02}" for number in range(rng.randrange(20, 40))]
    for member in members:
        story.join(member, *rng.sample(topics, rng.randint(1, len(topics))))
    story.rebalance()
    for member in members:
        story.subscribe(member, *rng.sample(topics, rng.randint(1, len(topics))))
    story.rebalance()
