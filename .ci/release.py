"""Prepare a release, up to what is uploaded: `python .ci/release.py 0.2.0`.

Looks at version, changelog, tag and the gate's last result, builds wheel and sdist of both packages, tries
them in clean environments, and writes beside them hashes, a bill of materials and an unsigned statement of
provenance. It uploads nothing, and makes no tag: it says how that is done.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parent.parent
PLUGIN: Final = "pytest-kafka-assignors"
GATE: Final = Path("build/gate.json")
"""What `.ci/run` writes when all of it has passed: the revision."""

_HEADING: Final = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<date>\S+))?$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class State:
    """What a release is made from.

    Attributes:
        revision: The commit.
        changed: Files that differ from it.
        tags: Tag -> the commit that it names.
        versions: Package -> its version.
        needs: What the plug-in's package needs.
        changelog: The text of CHANGELOG.md.
        passed: The commit that passed the gate last; empty if none did.
    """

    revision: str
    changed: Sequence[str]
    tags: Mapping[str, str]
    versions: Mapping[str, str]
    needs: Sequence[str]
    changelog: str
    passed: str

    @classmethod
    def of(cls, root: Path) -> State:
        """That of a working copy."""
        tags = [line.split() for line in _git(root, "show-ref", "--tags", "--dereference").splitlines()]
        projects = [
            tomllib.loads((root / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
            for folder in (".", PLUGIN)
        ]
        gate = root / GATE
        return cls(
            revision=_git(root, "rev-parse", "HEAD"),
            changed=_git(root, "status", "--porcelain").splitlines(),
            tags={name.removeprefix("refs/tags/").removesuffix("^{}"): commit for commit, name in tags},
            versions={project["name"]: project["version"] for project in projects},
            needs=projects[1]["dependencies"],
            changelog=(root / "CHANGELOG.md").read_text(encoding="utf-8"),
            passed=json.loads(gate.read_text(encoding="utf-8"))["revision"] if gate.exists() else "",
        )


def faults(version: str, state: State) -> list[str]:
    """Why this cannot be released as that version: what is wrong, and the way out; empty if it can."""
    found = []
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        found.append(f"{version!r} is no version: give MAJOR.MINOR.PATCH")
    if state.changed:
        found.append(f"{len(state.changed)} files are not committed, {state.changed[0]!r} first: commit them")
    found += [
        f"{package} has the version {there}: set {version} in its pyproject.toml"
        for package, there in state.versions.items()
        if there != version
    ]
    if not any(need.endswith(f"=={version}") for need in state.needs):
        found.append(f"{PLUGIN} needs {', '.join(state.needs)}: let it need {version}")
    found += _faults_of_changelog(version, state.changelog)
    tagged = state.tags.get(f"v{version}", state.revision)
    if tagged != state.revision:
        found.append(f"the tag v{version} names {tagged}, and this is {state.revision}: take another version")
    if state.passed != state.revision:
        found.append(f"the gate has passed {state.passed or 'nothing'}, not {state.revision}: run .ci/run")
    return found


def _faults_of_changelog(version: str, text: str) -> list[str]:
    headings = [*_HEADING.finditer(text)]
    parts = {
        heading["name"]: text[heading.end() : following.start() if following else len(text)].strip()
        for heading, following in zip(headings, [*headings[1:], None], strict=True)
    }
    found = []
    if parts.get("Unreleased"):
        found.append(f"CHANGELOG.md has entries under Unreleased: move them under [{version}]")
    if version not in parts:
        return [*found, f"CHANGELOG.md has no heading '## [{version}] - YYYY-MM-DD': write it"]
    if not parts[version]:
        found.append(f"CHANGELOG.md says nothing under [{version}]: write what a user notices")
    dated = next(heading["date"] for heading in headings if heading["name"] == version)
    try:
        date.fromisoformat(dated or "")
    except ValueError:
        found.append(f"CHANGELOG.md dates [{version}] {dated!r}: write YYYY-MM-DD")
    return found


def statement(version: str, revision: str, files: Mapping[str, str]) -> dict[str, object]:
    """An in-toto statement (v1) with SLSA's provenance (v1) of files, to be signed by who uploads them.

    Args:
        version: Of the release.
        revision: The commit that they are built from.
        files: File name -> its SHA-256 in hex.
    """
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(files.items())],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": ".ci/release.py",
                "externalParameters": {"version": version},
                "resolvedDependencies": [{"name": "source", "digest": {"gitCommit": revision}}],
            },
            "runDetails": {"builder": {"id": ".ci/release.py"}},
        },
    }


def build(folder: Path, tools: Path) -> None:
    """Build wheels and sdists of both packages into a folder, and try them in clean environments."""
    _run(".ci/wheel.sh", str(folder))
    (wheel,) = folder.glob("kafka_assignors-*.whl")
    _run(".ci/pythons.sh", str(wheel), "--tests")
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "source"
        source.mkdir()
        _run("bash", "-c", f"git archive HEAD | tar -x -C {source}")
        _run(f"{tools}/python", "-m", "build", "-q", "--sdist", "-o", str(folder), str(source))
        _run(f"{tools}/python", "-m", "build", "-q", "-o", str(folder), str(source / PLUGIN))
        user = Path(scratch) / "user"
        venv.create(user, with_pip=True)
        (sdist,) = folder.glob("kafka_assignors-*.tar.gz")
        _run(f"{user}/bin/pip", "install", "-q", str(sdist))
        _run(f"{user}/bin/python", ".ci/leads.py", "compiled")
    _run(f"{tools}/twine", "check", "--strict", *map(str, sorted(folder.iterdir())))


def describe(folder: Path, tools: Path, version: str, revision: str) -> None:
    """Write hashes, bill of materials and provenance beside what was built."""
    files = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.name.endswith((".whl", ".tar.gz"))
    }
    (wheel,) = folder.glob("kafka_assignors-*.whl")
    with tempfile.TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=True)
        _run(f"{scratch}/bin/pip", "install", "-q", f"{wheel}[aiokafka,cli,history,placement,testing]")
        bill = folder / "sbom.cdx.json"
        _run(f"{tools}/cyclonedx-py", "environment", f"{scratch}/bin/python", "--of", "JSON", "-o", str(bill))
    files[bill.name] = hashlib.sha256(bill.read_bytes()).hexdigest()
    sums = "".join(f"{digest}  {name}\n" for name, digest in sorted(files.items()))
    (folder / "SHA256SUMS").write_text(sums, encoding="utf-8")
    made = statement(version, revision, files)
    (folder / "provenance.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Prepare a release; 1 if something stands against it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("version", help="MAJOR.MINOR.PATCH")
    parser.add_argument("--folder", type=Path, default=ROOT / "dist", help="where to (default: dist)")
    parser.add_argument("--check", action="store_true", help="only look whether it can be released")
    options = parser.parse_args(arguments)
    state = State.of(ROOT)
    found = faults(options.version, state)
    for fault in found:
        print(fault, file=sys.stderr)
    if found or options.check:
        return 1 if found else 0
    options.folder.mkdir(parents=True, exist_ok=True)
    if present := sorted(path.name for path in options.folder.iterdir()):
        print(f"{options.folder} has files, {present[0]} first: empty it", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=True)
        _run(f"{scratch}/bin/pip", "install", "-q", "build", "cyclonedx-bom", "twine")
        build(options.folder, Path(scratch) / "bin")
        describe(options.folder, Path(scratch) / "bin", options.version, state.revision)
    for path in sorted(options.folder.iterdir()):
        print(f"{path.stat().st_size:>10,} bytes  {path.name}")
    print(
        f"\nNothing is uploaded. What is left to do:\n"
        f"  git tag -s v{options.version} {state.revision} && git push origin v{options.version}\n"
        f"  sigstore sign {options.folder}/SHA256SUMS {options.folder}/provenance.json\n"
        f"  twine upload {options.folder}/*.whl {options.folder}/*.tar.gz"
    )
    return 0


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], stdout=subprocess.PIPE, text=True, check=False
    )
    return done.stdout.strip()


def _run(*command: str) -> None:
    print("+", " ".join(command), file=sys.stderr)
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main())
