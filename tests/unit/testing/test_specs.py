"""What members of a group are made of, as their processes are told."""

import functools
import re
from pathlib import Path
from typing import Any, cast

import pytest
import trustme

from kafka_assignors import StickyAssignor
from kafka_assignors.testing._brokers.access import Access, Security
from kafka_assignors.testing._groups.clients import MODULES, ClientName, load
from kafka_assignors.testing._groups.config import WorkerConfig
from kafka_assignors.testing._groups.group import ConsumerGroup
from kafka_assignors.testing._groups.imports import imported, path_of
from kafka_assignors.testing._groups.specs import SETTINGS, MemberSpec, on_top
from tests.support import members

BY_EPOCHS = {"group_protocol": "consumer"}


def spec(**others: Any) -> MemberSpec:
    usual: dict[str, Any] = {
        "access": Access.to(["localhost:9092"]),
        "topics": "orders",
        "assignors": None,
        "client": "confluent-kafka",
        "place": "process",
        "settings": {},
        "commit": "each poll",
        "poll_ms": 100,
        "work_ms": 0,
        "recalls_joins": False,
    }
    return MemberSpec(**usual | others)


def config(made: MemberSpec) -> Any:
    return made.config("group", "m1", instance_id=None, held=False)


def test_what_is_set_goes_before_what_is_usual() -> None:
    made = config(spec(settings={"session_timeout_ms": 1, "fetch_max_wait_ms": 2}))
    assert made.settings == {**SETTINGS, "session_timeout_ms": 1, "fetch_max_wait_ms": 2}


def application(*_: Any, **__: Any) -> None:
    """What members run."""


def test_a_function_gets_arguments_by_name() -> None:
    path, arguments = path_of(application), {"db": "url"}
    for client in ((application, arguments), (path, arguments), functools.partial(application, db="url")):
        made = config(spec(client=client))
        assert (made.client, made.arguments) == (path, arguments)
        assert WorkerConfig.from_json(made.to_json()).arguments == arguments
    with pytest.raises(ValueError, match="gets its seat first; give arguments by name"):
        config(spec(client=functools.partial(application, "url")))


@pytest.mark.parametrize("package", ["", "tests", "tests/system"])
def test_a_function_in_a_file_may_import_relatively_to_its_package(package: str, tmp_path: Path) -> None:
    found = []
    for size in (3, 4):  # packages of one name in two places
        folder = tmp_path / str(size) / package
        folder.mkdir(parents=True)
        for number in range(len(Path(package).parts)):
            (folder.parents[number] if number else folder).joinpath("__init__.py").touch()
        relative = "from .limits import SIZE" if package else f"SIZE = {size}"
        (folder / "limits.py").write_text(f"SIZE = {size}\n")
        (folder / "test_x.py").write_text(f"{relative}\n\ndef application(seat):\n    return SIZE\n")
        found.append(imported(f"{folder / 'test_x.py'}:application")(None))
    assert found == [3, 4]


def test_what_is_no_path_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^'best' is no path of the form 'package\.module:name' or "):
        imported("best")


def test_settings_that_are_the_broker_s_are_no_member_s_by_epochs() -> None:
    made = config(spec(settings=BY_EPOCHS))
    assert made.settings == {"auto_offset_reset": "earliest", "metadata_max_age_ms": 1000, **BY_EPOCHS}
    # What somebody sets is for the client to refuse.
    changed = spec(settings=BY_EPOCHS).changed(settings={"session_timeout_ms": 1})
    assert config(changed).settings["session_timeout_ms"] == 1


def test_a_member_by_epochs_leaves_out_what_its_group_sets_for_classic_ones() -> None:
    changed = spec(settings={"session_timeout_ms": 45_000, "fetch_max_wait_ms": 2}).changed(
        settings=BY_EPOCHS
    )
    assert config(changed).settings == {
        "auto_offset_reset": "earliest",
        "metadata_max_age_ms": 1000,
        "fetch_max_wait_ms": 2,
        **BY_EPOCHS,
    }


@pytest.mark.parametrize(
    ("settings", "by_epochs"),
    [
        ({"group.protocol": "consumer"}, True),
        ({"group_protocol": "CONSUMER"}, True),
        ({"group_protocol": "classic"}, False),
        ({}, False),
    ],
)
def test_the_protocol_is_known_in_each_spelling(settings: dict[str, str], by_epochs: bool) -> None:
    assert config(spec(settings=settings)).by_epochs is by_epochs


@pytest.mark.parametrize(
    ("chosen", "why"),
    [("share", r"share groups \(KIP-932\) are not supported"), ("streams", "there is no such protocol")],
)
def test_a_group_of_another_protocol_is_refused_before_a_member_joins(chosen: str, why: str) -> None:
    said = f"^group_protocol={chosen}: {why}; use classic, which is the default, or consumer \\(KIP-848\\)$"
    with pytest.raises(ValueError, match=said):
        ConsumerGroup(["localhost:9092"], "orders", settings={"group_protocol": chosen})
    with ConsumerGroup(["localhost:9092"], "orders") as group, pytest.raises(ValueError, match=said):
        group.join(client="confluent-kafka", settings={"group.protocol": chosen})


@pytest.mark.parametrize(
    ("how", "refusal"),
    [
        ({"commit": "each_poll"}, "commit='each_poll': must be one of each poll, auto, never"),
        ({"place": "processes"}, "place='processes': must be one of process, thread"),
        (
            {"client": "kafka_python"},
            f"client=kafka_python: must be one of {', '.join(MODULES)}, or the path of a function of yours ",
        ),
    ],
)
def test_what_is_misspelled_does_not_pass_for_another_choice(how: dict[str, Any], refusal: str) -> None:
    with (
        pytest.raises(ValueError, match=f"^{re.escape(refusal)}"),
        ConsumerGroup(["localhost:9092"], "orders", **how) as group,
    ):
        group.join()


def test_a_way_to_own_that_is_misspelled_does_not_pass_for_exclusive() -> None:
    with (
        ConsumerGroup(["localhost:9092"], "orders") as group,
        pytest.raises(ValueError, match=r"^ownership='shared': must be one of exclusive, broadcast$"),
    ):
        group.wait_stable(ownership=cast("Any", "shared"))


def test_a_pattern_with_flags_is_refused_as_members_get_its_text() -> None:
    with pytest.raises(ValueError, match=r"IGNORECASE\): members get its text without flags; write"):
        ConsumerGroup(["localhost:9092"], re.compile("orders", re.IGNORECASE))


@pytest.mark.parametrize("assignors", ["range", StickyAssignor])
def test_an_assignor_that_is_in_no_list_is_no_list_of_letters(assignors: Any) -> None:
    with pytest.raises(TypeError, match=r"^assignors=.*: give a list, also of one$"):
        ConsumerGroup(["localhost:9092"], "orders", assignors)


def test_a_strategy_that_a_client_does_not_have_is_refused_with_those_it_has() -> None:
    known = "confluent-kafka has no assignor 'sticky': it has cooperative-sticky, range, roundrobin"
    with pytest.raises(ValueError, match=known):
        config(spec(client="confluent-kafka", assignors=[StickyAssignor]))


def test_an_assignor_for_a_function_on_confluent_kafka_is_the_client_s_of_its_name() -> None:
    made = config(spec(client=application, assignors=[StickyAssignor, "range"]))
    assert load("confluent-kafka").settings(made)["partition.assignment.strategy"] == "sticky,range"


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
def test_clients_of_the_classic_protocol_are_refused_by_epochs(client: str) -> None:
    with pytest.raises(ValueError, match=f"{client} knows only the classic group protocol"):
        config(spec(client=client, settings=BY_EPOCHS))


@pytest.mark.parametrize("name", ["uniform", "range", "org.example.MyAssignor"])
def test_an_assignor_by_epochs_is_the_broker_s(name: str) -> None:
    assert config(spec(assignors=[name], settings=BY_EPOCHS)).assignors == [name]


@pytest.mark.parametrize("client", ["confluent-kafka", "java"])
def test_an_assignor_by_epochs_is_asked_for_by_the_setting_of_the_new_protocol(client: ClientName) -> None:
    made = load(client).settings(config(spec(client=client, assignors=["range"], settings=BY_EPOCHS)))
    assert {name: made[name] for name in made if "assign" in name} == {"group.remote.assignor": "range"}


def test_an_assignor_that_brokers_do_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="has no assignor 'sticky'; it has uniform and range"):
        config(spec(client="java", assignors=["sticky"], settings=BY_EPOCHS))


def made_by_the_kit(client: ClientName, protocol: str, ca_file: Path) -> set[str]:
    """What a consumer is called with, if nobody sets anything."""
    trustme.CA().cert_pem.write_to_path(ca_file)
    security = Security(protocol="SASL_SSL", ca_file=str(ca_file), username="u", password="p")  # noqa: S106
    member = members.config(
        access=Access(("h:1",), security),
        client=client,
        assignors=["range"],
        instance_id="i",
        settings={"group_protocol": protocol},
    )
    return {*load(client).settings(member)} - {"group_protocol", "group.protocol", "log_level"}


@pytest.mark.parametrize(
    ("client", "protocol"),
    [*((client, "classic") for client in MODULES), ("confluent-kafka", "consumer"), ("java", "consumer")],
)
def test_each_setting_that_the_kit_makes_is_refused_if_somebody_else_does(
    client: ClientName, protocol: str, tmp_path: Path
) -> None:
    made = made_by_the_kit(client, protocol, tmp_path / "ca.pem")
    assert len(made) > 8
    for name in made:
        with pytest.raises(ValueError, match=f"^{re.escape(name)} is set by the kit: "):
            on_top({}, {name: "x"})


@pytest.mark.parametrize("name", ["enable_auto_commit", "enable.auto.commit"])
def test_who_sets_when_to_commit_is_pointed_to_the_argument(name: str) -> None:
    said = f'^{re.escape(name)} is set by the kit: say commit="auto", "each poll" or "never" of the group$'
    with pytest.raises(ValueError, match=said):
        ConsumerGroup(["localhost:9092"], "orders", settings={name: True})
    with ConsumerGroup(["localhost:9092"], "orders") as group, pytest.raises(ValueError, match=said):
        group.join(client=f"{__file__}:application", settings={name: True})


def test_a_setting_that_kafka_python_does_not_know_is_refused_before_its_member_starts() -> None:
    with pytest.raises(ValueError, match="no setting 'sesion_timeout_ms': did you mean session_timeout_ms"):
        config(spec(client="kafka-python", settings={"sesion_timeout_ms": 3}))
