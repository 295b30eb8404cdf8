#!/usr/bin/env bash
# Says whether this user can set up and run the bench in this checkout: one error that names what cannot be written, whose it is, and the
# remedy. Promises: changes nothing where everything can be written; looks no deeper than the folders that the set-up makes.
#
# usage: writable.sh
set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

for folder in "${REPO_ROOT}" "${CACHE_DIR}" "${REPO_ROOT}"/{build,build/logs,build/locks,build/tools,build/native-writer,.venv,runs}; do
  if [[ -e "${folder}" || "${folder}" == "${CACHE_DIR}" ]]; then need_writable "${folder}"; fi
done
