#!/usr/bin/env bash
# Installs the Debian/Ubuntu packages named in the given list files, and only those that are missing.
# Promises: nothing missing -> one line, no root, no network, well under a second. Never removes or
# upgrades a package, never asks a question. Two runs at once wait for each other.
#
# usage: apt-packages.sh [LIST...]     LIST is a file, or a name beside this script (default: apt-runtime.txt)
#        BENCH_SKIP_APT=1 says "I have installed them by other means" (the only way on other systems)
set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

list_file() {
  if [[ -f "$1" ]]; then
    printf '%s\n' "$1"
  elif [[ -f "${BOOTSTRAP_DIR}/$1" ]]; then
    printf '%s\n' "${BOOTSTRAP_DIR}/$1"
  else
    die "no such package list: $1" "give a file, or one of: $(cd -- "${BOOTSTRAP_DIR}" && echo apt-*.txt)"
  fi
}

read_packages() {
  local name file
  for name in "$@"; do
    file="$(list_file "${name}")"
    sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' -- "${file}"
  done
}

# Prints each of its arguments that dpkg does not have installed (removed but not purged counts as absent).
missing_packages() {
  local listing status package
  local -A installed=()
  listing="$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n')"
  while read -r status package; do
    if [[ "${status}" == installed ]]; then installed["${package}"]=1; fi
  done <<<"${listing}"
  for package in "$@"; do
    if [[ -z "${installed[${package}]:-}" ]]; then printf '%s\n' "${package}"; fi
  done
}

as_root() {
  if [[ ${EUID} -eq 0 ]]; then
    "$@"
  else
    sudo -- "$@"
  fi
}

apt() {
  # DPkg::Lock::Timeout waits for an unattended upgrade instead of failing beside it.
  as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l \
    apt-get --yes --quiet -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 "$@"
}

# install_missing PACKAGE...
install_missing() {
  local log="${CACHE_DIR}/apt-packages.log"
  say "installing $#: $*"
  say "output goes to ${log}"
  : >"${log}"
  apt update >>"${log}" 2>&1 9>&- || fail_with_log "${log}" "apt-get update failed; check network and apt sources"
  apt install --no-install-recommends "$@" >>"${log}" 2>&1 9>&- ||
    fail_with_log "${log}" "apt-get install failed for: $*"
}

main() {
  if [[ "${1:-}" == "--help" ]]; then
    sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
    return
  fi
  (($# > 0)) || set -- apt-runtime.txt
  local listing missing
  local wanted absent
  listing="$(read_packages "$@")"
  [[ -n "${listing}" ]] || die "no package named in: $*"
  mapfile -t wanted <<<"${listing}"

  if [[ "${BENCH_SKIP_APT:-0}" == 1 ]]; then
    say "skipped on request (BENCH_SKIP_APT=1)"
    return
  fi
  if ! { type -P apt-get && type -P dpkg-query; } >/dev/null; then
    die "this system has no apt-get, so packages cannot be installed here" \
      "install what these Debian packages hold, then run again with BENCH_SKIP_APT=1:" "${wanted[*]}"
  fi
  missing="$(missing_packages "${wanted[@]}")"
  if [[ -z "${missing}" ]]; then
    say "all ${#wanted[@]} packages present"
    return
  fi
  if [[ ${EUID} -ne 0 ]] && ! type -P sudo >/dev/null; then
    die "packages are missing and neither root nor sudo is at hand" "as root: apt-get install ${missing//$'\n'/ }"
  fi
  take_lock "${CACHE_DIR}/apt.lock"
  # The previous holder of the lock may have installed them meanwhile.
  missing="$(missing_packages "${wanted[@]}")"
  if [[ -n "${missing}" ]]; then
    mapfile -t absent <<<"${missing}"
    install_missing "${absent[@]}"
    missing="$(missing_packages "${wanted[@]}")"
    [[ -z "${missing}" ]] || die "still missing after the installation: ${missing//$'\n'/ }"
  fi
  say "all ${#wanted[@]} packages present after ${SECONDS} s"
}

main "$@"
