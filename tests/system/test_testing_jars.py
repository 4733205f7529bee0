"""The cache of jars is whole or absent, whatever happens to a fetch. No network is used but loopback."""

import functools
import hashlib
import http.server
import io
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kafka_assignors.testing._brokers import jars
from kafka_assignors.testing._brokers.jars import (
    JarsUnavailableError,
    cache_folder,
    fetch_jars,
    kafka_jars,
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("KAFKA_ASSIGNORS_CACHE", str(folder))
    return folder


def publish_hashes(path: Path, contents: Mapping[str, bytes]) -> Path:
    """The list of what jars are to be."""
    lines = [f"{hashlib.sha256(content).hexdigest()}  {name}" for name, content in contents.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The list of two jars, in place of Kafka's."""
    path = publish_hashes(tmp_path / "list.sha256", {"b.jar": b"bb", "a.jar": b"a"})
    monkeypatch.setattr(jars, "_HASHES", path)
    return path


class Fetches:
    """Stands for the download: writes two jars, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.coordinates: list[Sequence[str]] = []

    def __call__(self, coordinates: Sequence[str], folder: Path, *_: object) -> None:
        self.coordinates.append(coordinates)
        (folder / "b.jar").write_text("bb")
        (folder / "a.jar").write_text("a")


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch) -> Fetches:
    fake = Fetches()
    monkeypatch.setattr(jars, "_fetch", fake)
    return fake


def entries(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "jars").iterdir() if path.suffix != ".lock")


@pytest.mark.parametrize("error", [JarsUnavailableError("no network"), KeyboardInterrupt()])
def test_a_fetch_that_breaks_off_leaves_nothing(
    error: BaseException, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(_coordinates: Sequence[str], folder: Path, *_: object) -> None:
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


@pytest.mark.parametrize("damage", ["truncated", "missing", "changed"])
def test_a_damaged_entry_is_fetched_anew(
    damage: str, fetches: Fetches, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    jar = kafka_jars()[0]
    match damage:
        case "truncated":
            jar.write_text("")
        case "missing":
            jar.unlink()
        case _:
            jar.write_text("x")  # as long as it was
    assert [path.read_text() for path in kafka_jars()] == ["a", "bb"]
    assert [record.getMessage() for record in caplog.records] == [
        f"{jar.parent} is replaced: not as published: a.jar"
    ]
    assert len(fetches.coordinates) == 2
    assert sorted(path.name for path in jar.parent.iterdir()) == ["a.jar", "b.jar"]
    assert entries(cache) == [jar.parent.name]


@pytest.mark.parametrize(
    ("published", "wrong"),
    [
        ({"a.jar": b"another", "b.jar": b"bb"}, "a.jar"),
        ({"b.jar": b"bb"}, "a.jar"),
        ({"a.jar": b"another"}, "a.jar, b.jar"),
        ({"a.jar": b"a", "b.jar": b"bb", "c.jar": b"c"}, "c.jar"),
    ],
    ids=["another", "unknown", "both", "missing"],
)
@pytest.mark.usefixtures("fetches")
def test_jars_that_are_not_as_published_are_refused(
    published: Mapping[str, bytes], wrong: str, cache: Path, hashes: Path
) -> None:
    publish_hashes(hashes, published)
    with pytest.raises(JarsUnavailableError) as caught:
        kafka_jars()
    assert str(caught.value) == (
        f"not as published, by SHA-256: {wrong}, fetched for {', '.join(sorted(jars.COORDINATES))}."
        " Name Maven Central or a true mirror of it in jgo's settings; or name a running cluster"
        " (KAFKA_BOOTSTRAP)."
    )
    assert entries(cache) == []


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
    assert kafka_jars() == first
    assert len(fetches.coordinates) == 1
    assert capfd.readouterr() == ("", "")


def test_without_jgo_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setitem(sys.modules, "jgo.config", None)
    with pytest.raises(JarsUnavailableError, match=r"pip install 'kafka-assignors\[broker\]'"):
        kafka_jars()
    assert entries(cache) == []


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


def test_jgo_fetches_what_is_named_and_what_that_needs_and_says_what(
    repository: Path, cache: Path, hashes: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    publish(repository, "a", jar("A"), depends_on="b")
    publish(repository, "b", jar("B"))
    publish_hashes(hashes, {"a-1.jar": jar("A"), "b-1.jar": jar("B")})
    assert [(path.name, path.read_bytes()) for path in kafka_jars()] == [
        ("a-1.jar", jar("A")),
        ("b-1.jar", jar("B")),
    ]
    entry = kafka_jars()[0].parent
    assert sorted(path.name for path in entry.iterdir()) == ["a-1.jar", "b-1.jar"]
    assert capfd.readouterr() == ("", f"Fetching Apache Kafka 4.3.1 (45 MB, once) into {cache}\n")
    publish(repository, "old", jar("O"))
    publish_hashes(hashes, {"old-1.jar": jar("O")})
    assert [path.name for path in fetch_jars(["org.example:old:1"], hashes)] == ["old-1.jar"]
    assert capfd.readouterr() == ("", f"Fetching org.example:old:1 (once) into {cache}\n")


def test_a_jar_that_is_not_there_is_named(repository: Path, cache: Path) -> None:
    publish(repository, "a", jar("A"), depends_on="b")
    with pytest.raises(JarsUnavailableError, match=r"org\.example:b"):
        kafka_jars()
    assert entries(cache) == []


def test_a_fetch_without_network_fails_with_the_ways_out(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    with pytest.raises(JarsUnavailableError, match=r"Maven Central must be in reach.*KAFKA_BOOTSTRAP"):
        kafka_jars()
    assert entries(cache) == []


def test_on_a_terminal_a_bar_counts_the_jars(
    repository: Path, hashes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_hashes(hashes, {"a-1.jar": jar("A")})

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    publish(repository, "a", jar("A"))
    kafka_jars()
    assert "Apache Kafka 4.3.1: 1 jars" in terminal.getvalue()
