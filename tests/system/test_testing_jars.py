"""The cache of jars is whole or absent, whatever happens to a fetch. No network is used but loopback."""

from __future__ import annotations

import functools
import http.server
import io
import json
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_assignors.testing._brokers import jars
from kafka_assignors.testing._brokers.jars import (
    JarsUnavailableError,
    cache_folder,
    class_path,
    fetch_jars,
    kafka_jars,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("KAFKA_ASSIGNORS_CACHE", str(folder))
    return folder


class Fetches:
    """Stands for the download: writes two jars, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.coordinates: list[Sequence[str]] = []

    def __call__(self, coordinates: Sequence[str], folder: Path, _display: object) -> Mapping[str, int]:
        self.coordinates.append(coordinates)
        (folder / "b.jar").write_text("bb")
        (folder / "a.jar").write_text("a")
        return {"b.jar": 2, "a.jar": 1}


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch) -> Fetches:
    fake = Fetches()
    monkeypatch.setattr(jars, "_fetch", fake)
    return fake


def entries(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "jars").iterdir() if path.suffix != ".lock")


def test_jars_are_fetched_once_and_sorted(fetches: Fetches, cache: Path) -> None:
    first = kafka_jars()
    assert kafka_jars() == first
    assert [path.name for path in first] == ["a.jar", "b.jar"]
    assert len(fetches.coordinates) == 1
    assert entries(cache) == [first[0].parent.name]


def test_kafka_clients_is_asked_for_by_name(fetches: Fetches) -> None:
    kafka_jars()
    assert "org.apache.kafka:kafka-clients:4.3.1" in fetches.coordinates[0]


def test_extra_coordinates_have_an_entry_of_their_own_whatever_their_order(
    fetches: Fetches, cache: Path
) -> None:
    plain = kafka_jars()
    extra = kafka_jars(extra=("org.example:y:1", "org.example:x:1"))
    assert kafka_jars(extra=("org.example:x:1", "org.example:y:1")) == extra
    assert plain[0].parent != extra[0].parent
    assert fetches.coordinates[1] == sorted([*jars.COORDINATES, "org.example:x:1", "org.example:y:1"])
    assert len(fetches.coordinates) == 2
    assert len(entries(cache)) == 2


def test_other_coordinates_stand_alone_in_an_entry_of_their_own(fetches: Fetches, cache: Path) -> None:
    old = fetch_jars(["org.example:y:1", "org.example:x:1"])
    assert fetch_jars(["org.example:x:1", "org.example:y:1"]) == old
    assert kafka_jars()[0].parent != old[0].parent
    assert fetches.coordinates[0] == ["org.example:x:1", "org.example:y:1"]
    assert len(fetches.coordinates) == 2
    assert [name.rsplit("-", 1)[0] for name in entries(cache)] == ["jars", "kafka-4.3.1"]


@pytest.mark.parametrize("error", [JarsUnavailableError("no network"), KeyboardInterrupt()])
def test_a_fetch_that_breaks_off_leaves_nothing(
    error: BaseException, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(_coordinates: Sequence[str], folder: Path, _display: object) -> Mapping[str, int]:
        (folder / "a.jar").write_text("half of i")
        raise error

    monkeypatch.setattr(jars, "_fetch", break_off)
    with pytest.raises(type(error)):
        kafka_jars()
    assert entries(cache) == []

    monkeypatch.setattr(jars, "_fetch", Fetches())
    assert [path.read_text() for path in kafka_jars()] == ["a", "bb"]


def test_what_a_killed_fetch_left_is_neither_used_nor_kept(fetches: Fetches, cache: Path) -> None:
    entry = kafka_jars()[0].parent
    left = entry.rename(entry.with_name(f"{entry.name}.partial-x"))
    assert kafka_jars()[0].parent == entry
    assert not left.exists()
    assert len(fetches.coordinates) == 2
    assert entries(cache) == [entry.name]


@pytest.mark.parametrize("damage", ["truncated", "missing", "no manifest", "bad manifest"])
def test_a_damaged_entry_is_fetched_anew(damage: str, fetches: Fetches, cache: Path) -> None:
    jar = kafka_jars()[0]
    manifest = jar.parent / "manifest.json"
    match damage:
        case "truncated":
            jar.write_text("")
        case "missing":
            jar.unlink()
        case "no manifest":
            manifest.unlink()
        case _:
            manifest.write_text("[1, 2")
    assert [path.read_text() for path in kafka_jars()] == ["a", "bb"]
    assert len(fetches.coordinates) == 2
    assert sorted(path.name for path in jar.parent.iterdir()) == ["a.jar", "b.jar", "manifest.json"]
    assert entries(cache) == [jar.parent.name]


def test_of_many_at_once_one_fetches_and_all_use_it(fetches: Fetches) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: kafka_jars(), range(8)))
    assert results == [results[0]] * 8
    assert len(fetches.coordinates) == 1


def test_cached_jars_need_neither_jgo_nor_rich_and_say_nothing(
    fetches: Fetches, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    first = kafka_jars()
    for module in ("jgo", "jgo.maven", "jgo.config", "requests", "rich"):
        monkeypatch.setitem(sys.modules, module, None)
    assert kafka_jars(progress=True) == first
    assert len(fetches.coordinates) == 1
    assert capfd.readouterr() == ("", "")


def test_without_jgo_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setitem(sys.modules, "jgo.config", None)
    with pytest.raises(JarsUnavailableError, match=r"pip install 'kafka-assignors\[broker\]'"):
        kafka_jars(progress=False)
    assert entries(cache) == []


def test_the_class_path_is_one_value_for_java() -> None:
    assert class_path([Path("/x/a.jar"), Path("/x/b.jar")]) == "/x/a.jar:/x/b.jar"


@pytest.mark.parametrize(
    ("own", "xdg", "folder"),
    [
        ("/own", "/xdg", "/own"),
        ("~/own", "/xdg", "/home/me/own"),
        ("", "/xdg", "/xdg/kafka-assignors"),
        ("", "relative", "/home/me/.cache/kafka-assignors"),
        ("", "", "/home/me/.cache/kafka-assignors"),
    ],
)
def test_the_cache_folder_follows_the_environment(
    own: str, xdg: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("KAFKA_ASSIGNORS_CACHE", own)
    monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    assert cache_folder() == Path(folder)


# jgo itself, on a Maven repository of our own ------------------------------------------------------------


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def publish(repository: Path, artifact: str, content: bytes, depends_on: str = "") -> None:
    folder = repository / "org" / "example" / artifact / "1"
    folder.mkdir(parents=True)
    name = "<groupId>org.example</groupId><artifactId>{}</artifactId><version>1</version>"
    needs = f"<dependency>{name.format(depends_on)}</dependency>" if depends_on else ""
    (folder / f"{artifact}-1.pom").write_text(
        f"<project><modelVersion>4.0.0</modelVersion>{name.format(artifact)}"
        f"<dependencies>{needs}</dependencies></project>"
    )
    (folder / f"{artifact}-1.jar").write_bytes(content)


def jar(text: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("text"), text)  # of a fixed date
    return buffer.getvalue()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A Maven repository in a folder, served to jgo as if it was Central, with the artifact a on offer."""
    folder = tmp_path / "repository"
    folder.mkdir()
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        home = tmp_path / "home"
        (home / ".config").mkdir(parents=True)
        settings = f"[repositories]\ncentral = http://127.0.0.1:{server.server_port}\n"
        (home / ".config" / "jgo.conf").write_text(settings)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.setattr(jars, "COORDINATES", ("org.example:a:1",))
        yield folder
        server.shutdown()
        thread.join()


def test_jgo_fetches_what_is_named_and_what_that_needs(
    repository: Path, cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    publish(repository, "a", jar("A"), depends_on="b")
    publish(repository, "b", jar("B"))
    assert [(path.name, path.read_bytes()) for path in kafka_jars()] == [
        ("a-1.jar", jar("A")),
        ("b-1.jar", jar("B")),
    ]
    entry = kafka_jars()[0].parent
    assert sorted(path.name for path in entry.iterdir()) == ["a-1.jar", "b-1.jar", "manifest.json"]
    assert json.loads((entry / "manifest.json").read_text())["coordinates"] == ["org.example:a:1"]
    assert capfd.readouterr() == ("", f"Fetching Apache Kafka 4.3.1 (45 MB, once) into {cache}\n")


def test_a_fetch_of_other_coordinates_says_which(
    repository: Path, cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    publish(repository, "old", jar("O"))
    assert [path.name for path in fetch_jars(["org.example:old:1"])] == ["old-1.jar"]
    assert capfd.readouterr() == ("", f"Fetching org.example:old:1 (once) into {cache}\n")


def test_a_jar_that_arrives_damaged_is_refused(repository: Path, cache: Path) -> None:
    publish(repository, "a", jar("A").replace(b"A", b"X"))
    with pytest.raises(JarsUnavailableError, match=r"a-1\.jar arrived damaged"):
        kafka_jars(progress=False)
    assert entries(cache) == []


def test_a_jar_that_is_not_there_is_named(repository: Path, cache: Path) -> None:
    publish(repository, "a", jar("A"), depends_on="b")
    with pytest.raises(JarsUnavailableError, match=r"org\.example:b"):
        kafka_jars(progress=False)
    assert entries(cache) == []


def test_a_fetch_without_network_fails_with_the_ways_out(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    with pytest.raises(JarsUnavailableError, match=r"Maven Central must be in reach.*KAFKA_BOOTSTRAP"):
        kafka_jars(progress=False)
    assert entries(cache) == []


def test_on_a_terminal_a_bar_counts_the_jars(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    publish(repository, "a", jar("A"))
    kafka_jars()
    assert "Apache Kafka 4.3.1: 1 jars" in terminal.getvalue()
