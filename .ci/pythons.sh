#!/usr/bin/env bash
# Try a wheel with each CPython that is here, in clean environments and where there is no compiler.
#
#   .ci/pythons.sh WHEEL           leads a group of one member with it
#   .ci/pythons.sh WHEEL --tests   runs the unit tests as well, and groups on a broker
set -euo pipefail
cd "$(dirname "$0")/.."
wheel=$(realpath "$1")
tests=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# All but the package: it would be found before the one that is installed.
git archive HEAD | tar -x -C "$work" --exclude=kafka_assignors
# These read the sources, and say nothing of what is installed.
left_out=$(printf -- '--ignore=tests/unit/test_%s.py ' pages public_names rooms site)

# On the path, or where pyenv keeps them.
find_python() {
  for python in "python3.$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$1".*/bin/python3; do
    if "$python" -c '' 2> /dev/null; then
      echo "$python"
      return
    fi
  done
}

tried=0
for minor in 11 12 13 14; do
  python=$(find_python "$minor")
  if [[ ! $python ]]; then
    echo "CPython 3.$minor: not here"
    continue
  fi
  "$python" -m venv --upgrade-deps --clear "$work/venv"
  (
    cd "$work"
    CC=/bin/false venv/bin/pip install -q "$wheel"
    venv/bin/python .ci/leads.py compiled
    if [[ $tests == --tests ]]; then
      extras=aiokafka,cli,demo,history,java,placement,prometheus,testing
      venv/bin/pip install -qq --no-compile "$wheel[$extras]" --group dev
      # shellcheck disable=SC2086
      venv/bin/pytest -q -n 4 --dist loadgroup tests/unit $left_out
      DOCKER_HOST=unix:///nonexistent venv/bin/pytest -q integration_tests/test_{assignors,clients}.py \
        -k "lives_through or (static and kafka-python)"
    fi
  )
  echo "CPython 3.$minor: leads a group${tests:+; tests passed}"
  tried=$((tried + 1))
done
if ((tried == 0)); then
  echo "no CPython to try it with: install one of 3.11 to 3.14" >&2
  exit 1
fi
