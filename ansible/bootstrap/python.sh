#!/usr/bin/env bash
# Makes .venv at the repository's root hold what requirements.txt asks for and this project itself (editable).
# Promises: nothing to do -> one line, no network, well under a second; an interrupted or failed run is
# repeated by the next one (the stamp is written last). Two runs at once wait for each other.
#
# usage: python.sh         PYTHON=/path/to/python3 chooses what a new .venv is made with (3.11 or newer)
set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

readonly VENV="${REPO_ROOT}/.venv"
readonly REQUIREMENTS="${REPO_ROOT}/requirements.txt"
readonly STAMP="${VENV}/.bench-requirements"
readonly LOG="${REPO_ROOT}/build/logs/pip.log"

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

# What the environment was made from. The path is in it because a moved .venv has dead scripts.
wanted_stamp() {
  {
    printf '%s\n' "${REPO_ROOT}"
    cat -- "${REQUIREMENTS}" "${REPO_ROOT}/pyproject.toml"
  } | sha256sum | cut -d' ' -f1
}

is_current() {
  [[ -f "${STAMP}" && "$(<"${STAMP}")" == "$(wanted_stamp)" ]] && is_new_enough "${VENV}/bin/python"
}

make_venv() {
  local python
  python="$(find_python)"
  say "creating .venv with ${python}"
  "${python}" -m venv --clear "${VENV}" >"${LOG}" 2>&1 9>&- ||
    fail_with_log "${LOG}" "${python} -m venv failed; on Debian and Ubuntu install python3-venv"
}

pip_install() {
  "${VENV}/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "$@" >>"${LOG}" 2>&1 9>&- ||
    fail_with_log "${LOG}" "pip install $* failed"
}

# .venv is kept when only requirements changed; it is made anew when it is absent, moved or too old.
venv_is_usable() {
  [[ -f "${VENV}/pyvenv.cfg" ]] && is_new_enough "${VENV}/bin/python" &&
    [[ "$(head -n 1 -- "${VENV}/bin/pip" 2>/dev/null)" == "#!${VENV}/bin/python"* ]]
}

main() {
  [[ -f "${REQUIREMENTS}" ]] || die "${REQUIREMENTS} is missing" "restore it from git: it lists what to install"
  if is_current; then
    say ".venv is current"
    return
  fi
  # What follows empties and fills the folder: behind a link that would be somebody else's.
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
  say "installing the $(awk '/^[[:alnum:]]/ {n++} END {print n + 0}' "${REQUIREMENTS}") requirements into .venv (log: build/logs/pip.log)"
  pip_install --requirement "${REQUIREMENTS}"
  pip_install --no-deps --editable "${REPO_ROOT}"
  wanted_stamp >"${STAMP}"
  say ".venv is ready: $("${VENV}/bin/python" --version)"
}

main
