"""Files that commands write: whole and new, or as they were, with an error that says so."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_assignors._cli.main import main
from kafka_assignors._common.files import OutputError, write_whole
from kafka_assignors.groups import ClusterError, _metrics
from kafka_assignors.placement import Placements, draw
from kafka_assignors.placement._quality import measure
from kafka_assignors.placement._reassignment_file import write_rollback

PLACED = {"orders": {0: [1, 2], 1: [2, 1]}}


def reassign(path: Path) -> None:
    placements = path.with_name("placements.json")
    placements.write_text(Placements(PLACED).text, encoding="utf-8")
    status = main(["placement", "reassign", "--placements", str(placements), "--output", str(path)])
    placements.unlink()
    if status:
        raise OutputError(str(status))


def export(path: Path) -> None:
    _metrics.export_metrics(None, output=path)  # type: ignore[arg-type]


WRITERS: dict[str, Callable[[Path], object]] = {
    "picture": lambda path: draw(measure(PLACED, {1: None, 2: None}), path),
    "rollback": lambda path: write_rollback(path, PLACED),
    "plan": reassign,
    "metrics": export,
}


@pytest.fixture(autouse=True)
def _no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_metrics, "list_groups", lambda *_, **__: ())


@pytest.mark.parametrize("write", WRITERS.values(), ids=[*WRITERS])
def test_an_output_is_written_beside_and_put_in_place(
    write: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.svg"
    replace, seen = Path.replace, list[int]()

    def watched(new: Path, target: Path) -> Path:
        assert not target.exists()
        seen.append(new.stat().st_size)
        return replace(new, target)

    monkeypatch.setattr(Path, "replace", watched)
    write(path)
    assert seen == [path.stat().st_size]
    assert [one.name for one in tmp_path.iterdir()] == ["out.svg"]


@pytest.mark.parametrize("write", [WRITERS[name] for name in WRITERS if name != "rollback"])
def test_an_output_that_cannot_be_written_whole_leaves_the_old_one_and_an_error(
    write: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.svg"
    path.write_text("before", encoding="utf-8")

    def full(new: Path, data: bytes) -> int:
        with new.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OutputError):
        write(path)
    assert path.read_text(encoding="utf-8") == "before"
    assert [one.name for one in tmp_path.iterdir()] == ["out.svg"]


def test_a_link_and_the_rights_of_a_file_stay_and_a_device_is_written_to(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("before", encoding="utf-8")
    file.chmod(0o640)
    link.symlink_to(file)
    write_whole(link, "after")
    assert (link.is_symlink(), file.read_text(encoding="utf-8"), file.stat().st_mode & 0o777) == (
        True,
        "after",
        0o640,
    )
    write_whole(os.devnull, "x")
    assert not Path(os.devnull).is_file()
    with pytest.raises(OutputError, match=r"^cannot write .*: Is a directory$"):
        write_whole(tmp_path, "x")
    with pytest.raises(OutputError, match=r"^cannot write .*/none/x: No such file or directory$"):
        write_whole(tmp_path / "none" / "x", "x")


@pytest.mark.parametrize("to_file", [False, True])
def test_metrics_of_a_cluster_that_does_not_answer_say_so_and_have_nothing_stale(
    to_file: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: Any, **__: Any) -> Any:
        raise ClusterError("no broker answers at h:1")

    path = tmp_path / "groups.prom"
    path.write_text('kafka_groups_up 1.0\nkafka_group_lag_records{group="a"} 7.0\n', encoding="utf-8")
    monkeypatch.setattr(_metrics, "list_groups", down)
    more = ["--output", str(path)] if to_file else []
    assert main(["group", "export", "--bootstrap-server", "h:1", *more]) == 1
    said = capsys.readouterr()
    assert said.err == "kafka-assignors group export: no broker answers at h:1\n"
    lines = (path.read_text(encoding="utf-8") if to_file else said.out).splitlines()
    assert [line for line in lines if "kafka_groups_up " in line][2:] == ["kafka_groups_up 0.0"]
    assert not any("lag" in line for line in lines)
    assert ("groups_up 1.0" in path.read_text(encoding="utf-8"), said.out == "") == (not to_file, to_file)
    with pytest.raises(ClusterError):
        _metrics.export_metrics(None)  # type: ignore[arg-type]


def test_the_time_of_a_read_is_that_of_the_read(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 12.5])
    monkeypatch.setattr(_metrics, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    lines = _metrics.export_metrics(None).splitlines()  # type: ignore[arg-type]
    assert "kafka_groups_read_seconds 2.5" in lines
