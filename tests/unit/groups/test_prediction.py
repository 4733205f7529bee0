"""What a rebalance would make of a group, by the client that leads; and which client that is."""

from dataclasses import replace

import pytest

from kafka_assignors._common.strategies import CLIENTS, Client
from kafka_assignors._groups.prediction import guess_client, predict
from kafka_assignors._model.group import Member
from tests.support.live_groups import record_of

TOPICS = {"orders": range(4), "payments": range(2)}
BOTH = frozenset(TOPICS)


def members(*said: str) -> list[Member]:
    """Members by "member id" or "member id=instance id"."""
    named = [one.partition("=") for one in said]
    return [Member(member_id=one, instance_id=instance or None, topics=BOTH) for one, _, instance in named]


def orders_of(client: Client, *said: str) -> str | None:
    """Who gets each partition of orders by range, a letter each."""
    found = predict("range", members(*said), TOPICS, client)
    return None if found is None else "".join(found["orders", one] for one in range(4))


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
def test_clients_do_the_same_where_all_are_dynamic(strategy: str) -> None:
    (first, *others) = [predict(strategy, members("b", "a", "c"), TOPICS, client) for client in CLIENTS]
    assert others == [first] * 3
    assert first is not None
    assert "".join(first["orders", one] for one in range(4)) == ("aabc" if strategy == "range" else "abca")


def test_static_members_beside_dynamic_ones_are_in_another_order_by_each_client() -> None:
    said = ("b=2", "a", "c=1", "d")
    assert orders_of("java", *said) == "cbad"
    assert orders_of("aiokafka", *said) == "abcd"
    # b before c by member id, and c before b by instance id, with nobody to decide between them.
    assert orders_of("librdkafka", *said) == "acbd"


def test_what_librdkafka_puts_in_no_order_is_not_known() -> None:
    assert orders_of("librdkafka", "a=2", "b", "c=1") is None
    assert predict("roundrobin", members("a=2", "b", "c=1"), TOPICS, "librdkafka") is None


def test_kafka_python_leaves_members_out_where_kinds_alternate() -> None:
    assert orders_of("kafka-python", "a", "b=1", "c") == "bbcc"
    assert orders_of("kafka-python", "a", "c", "b=1") == "bbac"


def test_round_robin_skips_who_does_not_subscribe() -> None:
    group = [
        Member(member_id="a", topics=frozenset(["orders"])),
        Member(member_id="b", topics=frozenset(["payments"])),
    ]
    found = predict("roundrobin", group, TOPICS, "java")
    assert found is not None
    assert {one: owner for one, owner in found.items() if one[0] == "payments"} == {
        ("payments", 0): "b",
        ("payments", 1): "b",
    }


def test_of_other_strategies_nothing_is_predicted() -> None:
    assert predict("sticky", members("a"), TOPICS, "java") is None


LIBRDKAFKA = "00030000000100066f72646572730000000000000000ffffffff0000"
JAVA = "00030000000100066f7264657273ffffffff00000000ffffffffffff"
PYTHON = "00000000000100066f726465727300000000"


@pytest.mark.parametrize(
    ("client_id", "sent", "expected"),
    [
        ("billing", LIBRDKAFKA, "librdkafka"),
        ("rdkafka", PYTHON, "librdkafka"),
        ("billing", JAVA, "java"),
        ("billing", PYTHON, None),
        ("kafka-python-3.0.12", PYTHON, "kafka-python"),
        ("aiokafka-0.14.0", PYTHON, "aiokafka"),
        ("billing", "00", None),
    ],
)
def test_the_leaders_client_is_guessed_from_what_it_sent(
    client_id: str, sent: str, expected: Client | None
) -> None:
    value = record_of({"orders": 1}, "a", "b")
    value = replace(
        value,
        members=tuple(
            replace(one, client_id=client_id, subscription=bytes.fromhex(sent))
            if one.member_id == value.leader
            else replace(one, subscription=b"")
            for one in value.members
        ),
    )
    assert guess_client(value) == expected
    assert guess_client(replace(value, leader=None)) is None
