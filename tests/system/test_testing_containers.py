"""The choice of the image, settings as variables, and what is said without Docker; no container runs."""

import contextlib
import gc
import sys
import warnings
from typing import Any

import pytest
from docker.errors import APIError, ImageNotFound

from kafka_assignors.testing._brokers import containers
from kafka_assignors.testing._brokers.cluster import docker_has_image, kafka_cluster
from kafka_assignors.testing._brokers.containers import LOCAL_IMAGE, PUBLIC_IMAGE, server_settings, variable
from kafka_assignors.testing._brokers.credentials import Credentials
from kafka_assignors.testing._brokers.errors import ClusterUnavailableError
from kafka_assignors.testing._brokers.layout import Layout


class FakeEngine:
    """A Docker engine with images, and perhaps a registry to pull others from."""

    def __init__(self, *present: str, registry: bool = False) -> None:
        self.present = set(present)
        self.registry = registry
        self.images = self

    def get(self, image: str) -> None:
        if image not in self.present:
            raise ImageNotFound(image)

    def pull(self, image: str) -> None:
        if not self.registry:
            raise APIError("no such host")
        self.present.add(image)

    def close(self) -> None:
        pass


def use(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    class Client:
        def __init__(self) -> None:
            self.client: Any = engine

    monkeypatch.setattr(containers, "DockerClient", Client)


@pytest.fixture(autouse=True)
def no_image_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_IMAGE", raising=False)


@pytest.mark.parametrize(
    ("named", "present", "image"),
    [
        (None, {PUBLIC_IMAGE, LOCAL_IMAGE}, PUBLIC_IMAGE),
        (None, {LOCAL_IMAGE}, LOCAL_IMAGE),
        (None, set(), PUBLIC_IMAGE),
        ("mine", {"mine", PUBLIC_IMAGE}, "mine"),
        ("mine", {PUBLIC_IMAGE}, "mine"),
    ],
)
def test_a_named_image_is_taken_or_the_public_then_the_local_one_and_what_is_not_there_is_pulled(
    named: str | None,
    present: set[str],
    image: str,
    *,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if named:
        monkeypatch.setenv("KAFKA_IMAGE", named)
    engine = FakeEngine(*present, registry=True)
    use(engine, monkeypatch)
    assert containers.have_image() == image
    assert engine.present == present | {image}
    assert capsys.readouterr().err == ("" if image in present else f"Pulling the image {image} (once)\n")


@pytest.mark.parametrize("present", [[], [LOCAL_IMAGE]])
def test_an_engine_with_an_image_is_a_way_to_kafka(
    present: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use(FakeEngine(*present), monkeypatch)
    assert docker_has_image() == bool(present)


def test_insisting_on_docker_with_an_image_that_cannot_be_had_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(FakeEngine(PUBLIC_IMAGE), monkeypatch)
    monkeypatch.setenv("KAFKA_IMAGE", "mine")
    with (
        pytest.raises(
            ClusterUnavailableError, match="mine is not present and cannot be pulled: no such host"
        ),
        kafka_cluster(how="docker"),
    ):
        pass


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("broker.rack", "KAFKA_BROKER_RACK"),
        ("a.b_c-d", "KAFKA_A_B__C___D"),
    ],
)
def test_a_setting_has_the_variable_that_the_image_expects(setting: str, name: str) -> None:
    assert variable(setting) == name


def test_containers_know_each_other_and_have_a_rack_each() -> None:
    plain = Credentials("plaintext", contextlib.ExitStack())
    proxies = ["p:1", "p:2", "p:3"]
    settings = server_settings(2, Layout(nodes=3, settings={}, credentials=plain, proxies=proxies))
    assert settings["controller.quorum.voters"] == "1@kafka1:9093,2@kafka2:9093,3@kafka3:9093"
    assert (settings["node.id"], settings["broker.rack"]) == (2, "rack-2")
    assert settings["listeners"] == "PLAIN://:9092,PROXIED://:9095,BROKER://:19092,CONTROLLER://:9093"


def test_an_engine_that_does_not_answer_is_no_way_and_leaves_nothing_to_warn_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    found: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", found.append)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not docker_has_image()
        without = r"no Docker engine answers: .* use how='embedded'"
        with pytest.raises(ClusterUnavailableError, match=without), kafka_cluster(how="docker"):
            pass
        gc.collect()
    assert found == []
