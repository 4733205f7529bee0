"""What developers run: `nox -l` lists it, `nox -s unit` runs one, arguments after `--` go to pytest.

All of it runs in the environment that nox itself is installed in (`pip install -e . --group dev`): an
environment for each session would install Spark, Java and a solver each time.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "types", "unit"]

SPREAD = ("-n", "4", "--dist", "loadgroup")
"""Twice as many processes as a small machine has cores, as tests with brokers wait most of the time."""
GATE = ("--oracle-scale", "0.2")
WHOLE = ("--oracle-scale", "1", "--whole")
NIGHT = ("--oracle-scale", "10")
TRIED = ("0.13", "0.14")
"""The releases of aiokafka that are supported; a test compares them with those that the library takes."""


def run(session: nox.Session, *command: str) -> None:
    """Run a module of the environment that nox is in."""
    module = command[0].partition(".")[0]
    if module not in {"benchmarks", "tests"} and find_spec(module) is None:
        session.error(f"{module} is missing beside this nox: use that of the environment, .venv/bin/nox")
    session.run(sys.executable, "-m", *command, external=True)


def beside(session: nox.Session, requirement: str) -> None:
    """Have a session use another release of a library than is installed; one before its release counts."""
    folder = str(Path(session.cache_dir, f"beside-{session.name}").resolve())  # see `whole`
    run(session, "pip", "install", "-q", "--upgrade", "--pre", "--no-deps", "--target", folder, requirement)
    session.env["PYTHONPATH"] = folder


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff: rules and format; what rooms may import, and how large they may be."""
    run(session, "ruff", "check")
    run(session, "ruff", "format", "--check")
    run(session, "lint-imports", "--no-cache")
    run(session, "tests.support.lines")


@nox.session
def types(session: nox.Session) -> None:
    """Mypy, strict, tests included."""
    run(session, "mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation's site, in build/site: a broken link or anchor is an error."""
    run(session, "mkdocs", "build", *session.posargs)


@nox.session
def unit(session: nox.Session) -> None:
    """No process, socket or Java: under a minute."""
    run(session, "pytest", *SPREAD, "tests/unit", *session.posargs)


@nox.session
def oracle(session: nox.Session) -> None:
    """Random groups against solvers and Kafka's classes; the gate's: `-- --oracle-scale 0.2`."""
    run(session, "pytest", *SPREAD, "tests/oracle", *session.posargs)


@nox.session
def system(session: nox.Session) -> None:
    """Processes and sockets, no Kafka."""
    run(session, "pytest", *SPREAD, "tests/system", *session.posargs)


@nox.session
def spark(session: nox.Session) -> None:
    """Spark without Kafka."""
    run(session, "pytest", *SPREAD, "tests/spark", *session.posargs)


@nox.session
def browser(session: nox.Session) -> None:
    """The report in Chromium."""
    run(session, "pytest", "tests/browser", *session.posargs)


@nox.session
def broker(session: nox.Session) -> None:
    """Real Kafka brokers, clients of four libraries, chaos."""
    run(session, "pytest", *SPREAD, "integration_tests", *session.posargs)


@nox.session
@nox.parametrize("release", TRIED)
def aiokafka(session: nox.Session, release: str) -> None:
    """Consumers on each release of aiokafka that is supported; a broker, or `-- tests/unit/aio`."""
    beside(session, f"aiokafka=={release}.*")
    given = session.posargs or [
        "tests/unit/aio",
        "integration_tests/test_cooperative_aiokafka.py",
        "integration_tests/test_ways_out.py",
        *("-k", "not kafka-python"),
    ]
    run(session, "pytest", *given)


@nox.session
@nox.parametrize("release", ["oldest", "newest"])
def kafka_python(session: nox.Session, release: str) -> None:
    """Commands and consumers on the oldest and newest kafka-python allowed; a broker, or `-- tests/unit`."""
    (wanted,) = (one for one in requires("kafka-assignors") or () if one.startswith("kafka-python"))
    if release == "oldest":
        wanted = re.sub(".*>=([0-9.]+).*", r"kafka-python==\1", wanted)
    beside(session, wanted)
    given = session.posargs or [
        "tests/unit/assignors",
        "tests/unit/cluster",
        "integration_tests/test_client_behaviour.py",
        "integration_tests/test_group_explain.py",
        "integration_tests/test_group_live.py",
        "integration_tests/test_placement.py",
        "integration_tests/test_ways_out.py",
        *("-k", "not aiokafka"),
    ]
    run(session, "pytest", *given)


@nox.session
def pythons(session: nox.Session) -> None:
    """The wheel in clean environments of each CPython that is here: unit tests, and groups on a broker."""
    folder = session.create_tmp()
    session.run(".ci/wheel.sh", folder, external=True)
    (wheel,) = Path(folder).glob("kafka_assignors-*.whl")
    session.run(".ci/pythons.sh", str(wheel), "--tests", external=True)


@nox.session(venv_backend="venv")
def release(session: nox.Session) -> None:
    """Wheel and sdist of both packages, into dist: `nox -s release -- 0.2.0`; it uploads nothing."""
    (version,) = session.posargs
    plugin = "pytest-kafka-assignors"
    projects = [tomllib.loads(Path(at, "pyproject.toml").read_text())["project"] for at in (".", plugin)]
    heading = rf"(?m)^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$"
    tagged = git(session, "tag", "--list", f"v{version}")
    checks = {
        "a file is not committed": not git(session, "status", "--porcelain"),
        "a pyproject.toml has another version": {one["version"] for one in projects} == {version},
        f"{plugin} needs another version": f"=={version}" in " ".join(projects[1]["dependencies"]),
        "CHANGELOG.md has no dated heading": re.search(heading, Path("CHANGELOG.md").read_text()),
        f"the tag v{version} names another commit": not tagged
        or git(session, "rev-parse", f"{tagged}^{{commit}}") == git(session, "rev-parse", "HEAD"),
    }
    if wrong := [fault for fault, right in checks.items() if not right]:
        session.error(f"{version} cannot be released: {'; '.join(wrong)}")
    run(session, "tests.support.results", "--fail")
    session.install("build")
    source = session.create_tmp()
    session.run("bash", "-c", f"git archive HEAD | tar -x -C {source}", external=True)
    session.run(".ci/wheel.sh", "dist", external=True)
    session.run("python", "-m", "build", "-q", "--sdist", "-o", "dist", source)
    session.run("python", "-m", "build", "-q", "-o", "dist", f"{source}/{plugin}")


def git(session: nox.Session, *arguments: str) -> str:
    """What git says."""
    said = session.run("git", *arguments, silent=True, external=True)
    return str(said or "").strip()


@nox.session(name="all")
def everything(session: nox.Session) -> None:
    """All tests, as the README and the gate run them."""
    run(session, "pytest", *SPREAD, *GATE, *session.posargs)


@nox.session
def whole(session: nox.Session) -> None:
    """Slow tests, too, each with every assignor, client and store; then in containers; whole.md says so."""
    # Not `create_tmp`: it puts TMPDIR below our settings of pytest, which tests of pytest would then take.
    reports = [Path(session.cache_dir, f"whole-{name}.xml").resolve() for name in ("tests", "containers")]
    for report in reports:
        report.unlink(missing_ok=True)
    try:
        run(session, "pytest", *SPREAD, *WHOLE, f"--junitxml={reports[0]}", *session.posargs)
        env = {"PYTHON": sys.executable}
        session.run(".ci/containers.sh", "--whole", f"--junitxml={reports[1]}", external=True, env=env)
    finally:
        if not session.posargs:
            run(session, "benchmarks.whole", *map(str, reports))


@nox.session
def nightly(session: nox.Session) -> None:
    """Fifty times the gate's random groups, and new examples of each property."""
    run(session, "pytest", *SPREAD, *NIGHT, "tests/unit", "tests/oracle", *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """Which lines neither unit tests nor oracles reach."""
    shown = ("--cov", "--cov-report=term:skip-covered")
    run(session, "pytest", *SPREAD, *shown, "tests/unit", "tests/oracle", "tests/system", *session.posargs)
