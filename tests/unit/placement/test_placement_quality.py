"""How good placements are, and how that is drawn."""

from pathlib import Path

import pytest

from kafka_assignors.placement import PlacementError, draw
from kafka_assignors.placement._placement import Placement
from kafka_assignors.placement._quality import measure

RACKS = {1: "a", 2: "a", 3: "b", 4: "c"}
ORDERS: Placement = {0: [1, 2, 3], 1: [3, 4, 1], 2: [1, 2]}


def test_loads_are_counted_for_each_broker_and_rack() -> None:
    quality = measure(
        {"orders": ORDERS, "payments": {0: [4]}}, RACKS, sizes={("orders", 0): 7, ("payments", 0): 5}
    )
    assert [(load.broker, load.rack, load.replicas, load.leaders, load.size) for load in quality.brokers] == [
        (1, "a", 3, 2, 7),
        (2, "a", 2, 0, 7),
        (3, "b", 2, 1, 7),
        (4, "c", 2, 1, 5),
    ]
    assert [(rack.rack, rack.brokers, rack.replicas, rack.leaders) for rack in quality.racks] == [
        ("a", 2, 5, 2),
        ("b", 1, 2, 1),
        ("c", 1, 2, 1),
    ]
    assert (quality.partitions, quality.replicas) == (4, 9)
    assert (quality.replica_spread, quality.leader_spread) == (1, 2)
    assert quality.racks_per_partition == {1: 2, 2: 1, 3: 1}


def test_what_a_lost_rack_takes_with_it() -> None:
    quality = measure({"orders": ORDERS, "payments": {0: [4]}}, RACKS, min_insync=2)
    assert {rack.rack: (rack.offline, rack.read_only) for rack in quality.racks} == {
        "a": ((("orders", 2),), (("orders", 0),)),
        "b": ((), ()),
        "c": ((("payments", 0),), ()),
    }


def test_brokers_without_racks_have_no_racks_to_lose() -> None:
    quality = measure({"orders": ORDERS}, dict.fromkeys(RACKS))
    assert (quality.racks, quality.racks_per_partition) == ((), {})


def test_a_broker_that_is_not_up_is_shown_but_spreads_nothing() -> None:
    quality = measure({"orders": {0: [1, 9], 1: [2, 9], 2: [9, 1]}}, {1: "a", 2: "b"})
    assert [(load.broker, load.known, load.replicas) for load in quality.brokers] == [
        (1, True, 2),
        (2, True, 1),
        (9, False, 3),
    ]
    assert (quality.replica_spread, quality.leader_spread) == (1, 0)


def test_a_picture_names_racks_brokers_and_loads(tmp_path: Path) -> None:
    text = draw(measure({"orders": {0: [1, 9]}}, RACKS), tmp_path / "p.svg", title="orders").read_text()
    for word in (
        "orders",
        "replicas: 0 to 1 on a broker",
        "leaders: 0 to 1 on a broker",
        "broker 9",
        "not up",
    ):
        assert word in text


def test_a_rack_s_name_is_no_formula(tmp_path: Path) -> None:
    text = draw(measure({"orders": {0: [1]}}, {1: r"$\a{$"}), tmp_path / "p.svg", title="$_$").read_text()
    assert r"$\a{$" in text
    assert "$_$" in text


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlacementError, match=r"p\.txt is no name for a picture"):
        draw(measure({"orders": ORDERS}, RACKS), tmp_path / "p.txt")
    with pytest.raises(PlacementError, match="no brokers"):
        draw(measure({}, {}), tmp_path / "p.png")
