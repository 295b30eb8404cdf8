# shellcheck shell=bash disable=SC2034  # its variables are read by the scripts that source it
# Shared by the bootstrap scripts: the repository's place, their messages, and the lock by which two of
# them running at once wait for each other. Sourced, never run; sourcing it changes nothing.

shopt -s inherit_errexit # a failure inside $(...) must stop there too

BOOTSTRAP_DIR="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)"
REPO_ROOT="$(cd -- "${BOOTSTRAP_DIR}/../.." && pwd -P)"
# Outside the repository, so that two clones of one user share downloads, builds and locks.
CACHE_DIR="${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME}/.cache}/daq-storage-bench"

say() { printf '%s: %s\n' "$(basename -- "$0" .sh)" "$*"; }

die() {
  printf '%s: error: %s\n' "$(basename -- "$0" .sh)" "$1" >&2
  shift
  local line
  for line in "$@"; do printf '  %s\n' "${line}" >&2; done
  exit 1
}

# take_lock FILE: hold FILE until this script ends. The lock is the kernel's: it cannot be left behind.
# File descriptor 9 is closed for long-lived children by their callers (9>&-) where they could outlive us.
take_lock() {
  local folder
  folder="$(dirname -- "$1")"
  if ! mkdir -p -- "${folder}" 2>/dev/null || [[ ! -w "${folder}" || (-e "$1" && ! -w "$1") ]]; then
    die "$(id -un) may not write $1" "run this as the owner of ${folder%/build/locks}, or in a clone of your own"
  fi
  exec 9>"$1"
  if ! flock --nonblock 9; then
    say "another run holds $1; waiting up to 30 minutes for it"
    flock --timeout 1800 9 || die "another run still holds $1" \
      "wait for it, or end that process (fuser $1 shows it), then run this again"
  fi
}

# fail_with_log LOG MESSAGE: show the end of LOG, say where the rest is, and stop.
fail_with_log() {
  printf -- '--- last lines of %s ---\n' "$1" >&2
  tail -n 20 -- "$1" >&2
  die "$2" "the whole output is in $1"
}
