#!/usr/bin/env bash
# Runs all of `ansible-test sanity` on the collection that collection.py lays out, for the Python of .venv.
# Promises: what ansible-test installs for itself stays in the user's cache, so that a second run needs a third of the time. Each test's
# own requirements come from PyPI, as ansible-test pins them. It would fetch pip from a server of its own: Python's bundled one is taken
# instead, so that a machine that reaches only PyPI can run it.
#
# usage: sanity.sh [--test NAME ...]
set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

readonly BIN="${REPO_ROOT}/.venv/bin"
readonly OWN_HOME="${CACHE_DIR}/ansible-test"
readonly LOG="${REPO_ROOT}/build/logs/ansible-test.log"

# The name of the file that ansible-test looks for holds the version of pip that it asks for.
bring_pip() {
  local cache="${OWN_HOME}/.ansible/test/cache" pins version
  pins="$("${BIN}/python" -c 'import ansible_test._internal.python_requirements as p; print(p.__file__)')"
  version="$(sed -n "s/^ *pip='\([0-9.]*\)',$/\1/p" "${pins}")"
  mkdir -p -- "${cache}"
  printf 'import ensurepip\nensurepip.bootstrap(upgrade=True)\n' >"${cache}/get_pip_${version//./_}.py"
}

# Not below build/: ansible-test asks git which files there are, and git ignores that folder.
FOLDER="$(mktemp -d)"
readonly FOLDER
trap 'rm -rf -- "${FOLDER}"' EXIT

main() {
  local configuration="${XDG_CONFIG_HOME:-${HOME}/.config}" python # pip's, of the user
  python="$("${BIN}/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
  bring_pip
  mkdir -p -- "$(dirname -- "${LOG}")"
  "${BIN}/python" "${BOOTSTRAP_DIR}/collection.py" "${FOLDER}" >/dev/null
  cd -- "${FOLDER}/ansible_collections/daq/storage_bench"
  XDG_CONFIG_HOME="${configuration}" HOME="${OWN_HOME}" LC_ALL=C.UTF-8 PATH="${BIN}:${PATH}" \
    "${BIN}/ansible-test" sanity --python "${python}" --color no "$@" >"${LOG}" 2>&1 ||
    fail_with_log "${LOG}" "ansible-test sanity found something in the collection"
  # It succeeds also where it finds nothing to look at.
  if grep -q 'All targets skipped' "${LOG}"; then
    fail_with_log "${LOG}" "ansible-test found no file of the collection: is TMPDIR in a git repository?"
  fi
  say "$(grep -c '^Running sanity test' "${LOG}") sanity tests passed on daq.storage_bench (log: build/logs/ansible-test.log)"
}

main "$@"
