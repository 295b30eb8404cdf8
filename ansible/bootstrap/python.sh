#!/usr/bin/env bash
# Makes .venv at the repository's root hold one group of requirements and this project itself (editable). The groups are
# requirements-GROUP.txt beside this script, each package with its hashes: qualify (a run and its report), fleet (qualify, the index over
# all runs and their store), analysis (fleet and the reader of ROOT files), test (all of them, linters and test libraries). uv installs them; pip installs uv.
# Promises: nothing to do -> one line, no network, well under a second; an interrupted or failed run is
# repeated by the next one (the stamp is written last). Two runs at once wait for each other.
#
# usage: python.sh [qualify|fleet|analysis|test]      default: qualify
#        PYTHON=/path/to/python3 chooses the interpreter for a new .venv (3.11 or newer)
set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

readonly VENV="${REPO_ROOT}/.venv"
readonly GROUP="${1:-qualify}"
readonly LISTS="${REPO_ROOT}/ansible/bootstrap"
readonly STAMP="${VENV}/.bench-requirements"
readonly LOG="${REPO_ROOT}/build/logs/python.log"

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

# Distributions whose python3 is older often carry a newer one under its own name.
find_python() {
  local name path
  for name in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
    if path="$(type -P "${name}")" && is_new_enough "${path}"; then
      printf '%s\n' "${path}"
      return
    fi
    [[ -z "${PYTHON:-}" ]] || break # a chosen interpreter is taken or refused, never replaced
  done
  die "no Python of 3.11 or newer found (looked for ${PYTHON:-python3, python3.14 ... python3.11})" \
    "install one (Debian 12 or newer, Ubuntu 24.04 or newer: apt-get install python3 python3-venv)" \
    "or name it: PYTHON=/path/to/python3.11"
}

# The groups that hold all of this one, itself first.
groups_with() {
  case "${GROUP}" in
    qualify) printf '%s\n' qualify fleet analysis test ;;
    fleet) printf '%s\n' fleet analysis test ;;
    analysis) printf '%s\n' analysis test ;;
    test) printf '%s\n' test ;;
    *) die "there is no group of requirements '${GROUP}'" "name qualify, fleet, analysis or test" ;;
  esac
}

# The stamp: the environment's sources. The path is in it because a moved .venv has dead scripts.
stamp_of() {
  {
    printf '%s\n' "${REPO_ROOT}"
    cat -- "${LISTS}/requirements-uv.txt" "${LISTS}/requirements-$1.txt" "${REPO_ROOT}/pyproject.toml" "${REPO_ROOT}/setup.py" "${LISTS}/python.sh"
  } | sha256sum | cut -d' ' -f1
}

is_current() {
  local group
  [[ -f "${STAMP}" ]] && is_new_enough "${VENV}/bin/python" || return 1
  for group in $(groups_with); do
    if [[ "$(<"${STAMP}")" == "$(stamp_of "${group}")" ]]; then return; fi
  done
  return 1
}

make_venv() {
  local python
  python="$(find_python)"
  say "creating .venv with ${python}"
  "${python}" -m venv --clear "${VENV}" >"${LOG}" 2>&1 9>&- ||
    fail_with_log "${LOG}" "${python} -m venv failed; on Debian and Ubuntu install python3-venv"
}

install_uv() {
  "${VENV}/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --require-hashes \
    --requirement "${LISTS}/requirements-uv.txt" >>"${LOG}" 2>&1 9>&- || fail_with_log "${LOG}" "pip could not install uv"
}

# pip_says VARIABLE KEY: what pip is told by its environment or its configuration.
pip_says() { printf '%s' "${!1:-$("${VENV}/bin/python" -m pip config get "global.$2" 2>/dev/null || :)}"; }

# On a machine that reaches only a mirror or a folder of wheels, pip is configured for it; uv does not read pip's configuration.
uv_install() {
  local index certificates folder sources=()
  index="${UV_DEFAULT_INDEX:-$(pip_says PIP_INDEX_URL index-url)}"
  [[ -z "${index}" ]] || export UV_DEFAULT_INDEX="${index}"
  certificates="${SSL_CERT_FILE:-$(pip_says PIP_CERT cert)}"
  [[ -z "${certificates}" ]] || export SSL_CERT_FILE="${certificates}"
  export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-1}" # as pip, which asks the system too
  export UV_HTTP_TIMEOUT="${UV_HTTP_TIMEOUT:-${PIP_DEFAULT_TIMEOUT:-60}}"
  for folder in $(pip_says PIP_FIND_LINKS find-links); do
    if [[ "${folder}" == *://* || -d "${folder}" ]]; then sources+=(--find-links "${folder}"); fi
  done
  case "$(pip_says PIP_NO_INDEX no-index)" in 1 | [Tt]rue | [Yy]es | on) sources+=(--no-index) ;; esac
  VIRTUAL_ENV="${VENV}" UV_NO_PROGRESS=1 "${VENV}/bin/uv" pip install --no-config "${sources[@]}" "$@" >>"${LOG}" 2>&1 9>&- ||
    fail_with_log "${LOG}" "uv pip install $* failed"
}

# uv compiles nothing: what a run imports is imported here once, and Python keeps it compiled. All that is installed would take twice the
# time, and a test library is compiled at its first use. A broken package is found here and not in the middle of a run.
readonly IMPORTED='import ansible.cli.playbook, ansible.executor.task_executor, daq_bench.bench_report.__main__, matplotlib.backends.backend_svg, daq_bench.rig.cli, weasyprint'

compile_imported() {
  env -u PYTHONDONTWRITEBYTECODE "${VENV}/bin/python" -c "${IMPORTED}" >>"${LOG}" 2>&1 9>&- ||
    fail_with_log "${LOG}" "what was installed cannot be imported"
}

# .venv is kept when only requirements changed; it is made anew when it is absent, moved or too old.
venv_is_usable() {
  [[ -f "${VENV}/pyvenv.cfg" ]] && is_new_enough "${VENV}/bin/python" &&
    [[ "$(head -n 1 -- "${VENV}/bin/pip" 2>/dev/null)" == "#!${VENV}/bin/python"* ]]
}

main() {
  local requirements="${LISTS}/requirements-${GROUP}.txt"
  groups_with >/dev/null
  [[ -f "${requirements}" ]] || die "${requirements} is missing" "restore it from git: it lists what to install"
  if is_current; then
    say ".venv is current"
    return
  fi
  # The next steps empty and fill the folder: behind a link, that would be somebody else's.
  [[ ! -L "${VENV}" ]] || die "${VENV} is a link to $(readlink -- "${VENV}"), which this project did not make" \
    "remove the link (rm ${VENV}): an environment of its own is then made here"
  take_lock "${REPO_ROOT}/build/locks/python.lock"
  if is_current; then
    say ".venv is current"
    return
  fi
  mkdir -p -- "$(dirname -- "${LOG}")"
  : >"${LOG}"
  rm -f -- "${STAMP}"
  venv_is_usable || make_venv
  say "installing the $(awk '/^[[:alnum:]]/ {n++} END {print n + 0}' "${requirements}") requirements of '${GROUP}' into .venv (log: build/logs/python.log)"
  install_uv
  uv_install --require-hashes --requirement "${requirements}"
  uv_install --no-deps --no-build-isolation --editable "${REPO_ROOT}"
  compile_imported
  stamp_of "${GROUP}" >"${STAMP}"
  say ".venv is ready after ${SECONDS} s: $("${VENV}/bin/python" --version)"
}

main
