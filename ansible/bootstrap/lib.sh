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

# need_writable FOLDER: makes it if it is not there, or ends with whose it is and the remedy.
need_writable() {
  local told nearest="$1"
  told="$(LC_ALL=C mkdir -p -- "$1" 2>&1)" && [[ -w "$1" ]] && return
  until [[ -e "${nearest}" ]]; do nearest="$(dirname -- "${nearest}")"; done
  case "${told}" in
    *"No space left"* | *"quota"*) die "$1 cannot be made: ${told##*: }" "make room there, then run this again" ;;
    *"Read-only file system"*) told="its file system is read-only" ;;
    *) if [[ ${EUID} -eq 0 ]]; then told="not even root may: its file system may be read-only"; else told="it belongs to $(stat -c %U -- "${nearest}")"; fi ;;
  esac
  die "$(id -un) cannot write to ${nearest}: ${told}" \
    "work in a clone of your own (git clone ${REPO_ROOT}), or run this as the user whose it is, or with sudo"
}

# take_lock FILE: hold FILE until this script ends. The lock is the kernel's: it cannot be left behind.
# File descriptor 9 is closed for long-lived children by their callers (9>&-) where they could outlive us.
take_lock() {
  need_writable "$(dirname -- "$1")"
  [[ ! -e "$1" || -w "$1" ]] || die "$(id -un) cannot write to $1, which belongs to $(stat -c %U -- "$1")" \
    "an earlier run by that user left it: give it to $(id -un), as root: chown -R $(id -un) $(dirname -- "$1")"
  exec 9>"$1"
  if ! flock --nonblock 9; then
    say "another run holds $1; waiting up to 30 minutes for it"
    flock --timeout 1800 9 || die "another run still holds $1" \
      "wait for it, or end that process (fuser $1 shows it), then run this again"
  fi
}

# Prints each file system that the set-up fills and that has less than 100 MiB left.
full_disks() {
  df --output=avail,target --block-size=1M -- / "${REPO_ROOT}" "${CACHE_DIR}" "${TMPDIR:-/tmp}" 2>/dev/null |
    awk 'NR > 1 && $1 < 100 && !met[$2]++ {printf "%s has %d MiB left\n", $2, $1}'
}

# fail_with_log LOG MESSAGE: show the end of LOG, say where the rest is, and stop.
fail_with_log() {
  local full
  printf -- '--- last lines of %s ---\n' "$1" >&2
  tail -n 20 -- "$1" >&2
  full="$(full_disks)"
  [[ -z "${full}" ]] || die "$2" "the disk is full: ${full//$'\n'/, }. Make room there, then run this again"
  die "$2" "the whole output is in $1"
}
