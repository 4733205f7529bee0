#!/usr/bin/env bash
# Make sure that a Docker engine answers: install it (Debian, as root) and start it where none does.
#
#   engine.sh [start]   does nothing if an engine answers already
#   engine.sh stop      stops the engine that `start` has started
set -euo pipefail

run=/run/kafka-assignors-docker # pid and log of the engine that was started here
answer_timeout=30               # seconds

answers() { docker info >/dev/null 2>&1; }

# Run a command until it succeeds, or fail after a number of seconds.
within() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.1
  done
}

start() {
  if answers; then return; fi
  if ! command -v dockerd >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker.io >/dev/null
  fi
  if answers; then return; fi # where packages may start services, this one has
  mkdir -p "$run"
  setsid nohup dockerd --pidfile "$run/pid" >"$run/log" 2>&1 </dev/null &
  if ! within "$answer_timeout" answers; then
    echo "dockerd does not answer. The end of its log:" >&2
    tail -n 20 "$run/log" >&2
    exit 1
  fi
}

stop() {
  local pid
  pid=$(cat "$run/pid" 2>/dev/null) || return 0
  gone() { ! kill -0 "$pid" 2>/dev/null; }
  kill "$pid" 2>/dev/null || true
  within "$answer_timeout" gone
  rm -f "$run/pid"
}

case ${1:-start} in
  start) start ;;
  stop) stop ;;
  *)
    sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
