#!/usr/bin/env bash
# The integration tests once more, on brokers in containers; arguments go to pytest. All but those about clients,
# history and hostile members, to which brokers are the same.
set -euo pipefail
cd "$(dirname "$0")/.."

trap '.ci/docker/engine.sh stop' EXIT
.ci/docker/engine.sh start
.ci/docker/image.sh
in_containers=(assignors brokers bugs_of_records bugs_of_services demo faults group_runner
  kip848_members network_of_clients readme security)
"${PYTHON:-.venv/bin/python}" -m pytest $(printf 'integration_tests/test_%s.py ' "${in_containers[@]}") \
  --kafka=docker -n 4 --dist loadgroup "$@"
