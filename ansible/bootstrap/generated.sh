#!/usr/bin/env bash
# Writes what git does not hold: the JSON Schemas of the documents that have types, into inventory/schemas, and Grafana's dashboards and
# alert rules, into reports/dashboards. Needs .venv (python.sh).
# Promises: nothing to do -> nothing said, no Python, well under a second. Written again when a source is newer than the last time (the stamp
# is written last), or a file is missing. Two runs at once wait for each other.
#
# usage: generated.sh
set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

readonly STAMP="${REPO_ROOT}/build/generated.stamp"
readonly SCHEMAS="${REPO_ROOT}/inventory/schemas" DASHBOARDS="${REPO_ROOT}/reports/dashboards"
readonly SOURCES=("${REPO_ROOT}/inventory/daq_bench/bench_model" "${REPO_ROOT}/reports/daq_bench/bench_dashboards" "${REPO_ROOT}/inventory/metrics.yml"
  "${REPO_ROOT}/.venv/.bench-requirements")

files() { ls -- "${SCHEMAS}" "${DASHBOARDS}" "${DASHBOARDS}/alerting" 2>/dev/null; }

newer_sources() {
  find "${SOURCES[@]}" \( -name '*.py' -o -name metrics.yml -o -name .bench-requirements \) -newer "${STAMP}" -print -quit
}

is_current() { [[ -f "${STAMP}" && -z "$(newer_sources)" && "$(<"${STAMP}")" == "$(files)" ]]; }

python_with() { PYTHONPATH="${REPO_ROOT}/inventory:${REPO_ROOT}/agents:${REPO_ROOT}/reports" "${REPO_ROOT}/.venv/bin/python" "$@"; }

main() {
  if is_current; then return; fi
  take_lock "${REPO_ROOT}/build/locks/generated.lock"
  if is_current; then return; fi
  [[ -x "${REPO_ROOT}/.venv/bin/python" ]] || die "${REPO_ROOT}/.venv has no Python" "make python"
  : >"${STAMP}.began" # the stamp's time: a source that changes meanwhile is newer
  python_with -m daq_bench.bench_model.evidence.schemas "${SCHEMAS}"
  python_with -m daq_bench.bench_dashboards write >/dev/null
  files >"${STAMP}"
  touch --reference="${STAMP}.began" -- "${STAMP}"
  rm -- "${STAMP}.began"
  say "inventory/schemas and reports/dashboards are written"
}

main
