#!/usr/bin/env bash
# Installs the packages of the given purposes, by the names that this system has for them (packages.txt), and only those that are
# missing: with apt-get on Debian and Ubuntu, with dnf on Enterprise Linux. Promises: nothing missing -> one line, no root, no
# network, well under a second. Never removes or upgrades a package, never asks a question, adds no repository. Two runs at once
# wait for each other.
#
# usage: packages.sh [PURPOSE...]      runtime (default), test, virtual, go, rust
#        packages.sh --names PURPOSE...   prints the names for this system
#        BENCH_SKIP_PACKAGES=1 says "I have installed them by other means" (the only way on other systems)
set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

readonly MAP="${BOOTSTRAP_DIR}/packages.txt"
readonly LOG="${CACHE_DIR}/packages.log"
declare -A REPOSITORY=() # of a name, where the map says one
SYSTEM="" # debian, ubuntu or el; empty: another system
WANTED=() # names on this system; on any other, Debian's

find_system() {
  local words
  # shellcheck source=/dev/null
  words=" $(source "${BENCH_OS_RELEASE:-/etc/os-release}" && printf '%s %s' "${ID:-}" "${ID_LIKE:-}") "
  case "${words}" in
    *" ubuntu "*) SYSTEM=ubuntu ;;
    *" debian "*) SYSTEM=debian ;;
    *" rhel "* | *" centos "*) SYSTEM=el ;;
  esac
}

# read_map PURPOSE...: fills WANTED and REPOSITORY.
read_map() {
  local purpose debian ubuntu el rest name unknown=()
  local -A asked=() met=() seen=()
  for purpose in "$@"; do asked["${purpose}"]=1; done
  while read -r purpose debian ubuntu el rest; do
    [[ "${purpose}" != "" && "${purpose}" != "#"* ]] || continue
    [[ -n "${el}" && -z "${rest}" ]] || die "${MAP}: '${purpose} ${debian}' needs a purpose and three names"
    met["${purpose}"]=1
    [[ -n "${asked[${purpose}]:-}" ]] || continue
    case "${SYSTEM}" in
      ubuntu) name="${ubuntu}" ;;
      el) name="${el}" ;;
      *) name="${debian}" ;;
    esac
    [[ "${name}" != "=" ]] || name="${debian}"
    if [[ "${name}" == "?" ]]; then unknown+=("${debian}"); fi
    [[ "${name}" != [-?] ]] || continue
    if [[ "${name}" == *@* ]]; then REPOSITORY["${name%@*}"]="${name#*@}"; fi
    name="${name%@*}"
    [[ -n "${seen[${name}]:-}" ]] || WANTED+=("${name}")
    seen["${name}"]=1
  done <"${MAP}"
  for purpose in "$@"; do
    [[ -n "${met[${purpose}]:-}" ]] || die "packages have no purpose '${purpose}'" "name one of: ${!met[*]}"
  done
  ((${#unknown[@]} == 0)) || die "nobody has looked up the names that Enterprise Linux has for the packages of: $*" \
    "only the set-up of a qualification (purpose runtime) is supported there; tests and the virtual candidate run on Debian and Ubuntu" \
    "or install what these Debian packages hold and set BENCH_SKIP_PACKAGES=1: ${unknown[*]}"
}

# Prints each wanted name that is not installed. With dpkg, removed but not purged counts as absent; with rpm, a package that provides
# the name counts as present.
missing_packages() {
  local listing status name
  local -A installed=()
  if [[ "${SYSTEM}" == el ]]; then
    # Its exit status is the number of names that nothing provides.
    listing="$(LC_ALL=C rpm --query --whatprovides "${WANTED[@]}" 2>&1)" || [[ "${listing}" == *"no package provides "* ]] ||
      die "rpm does not answer: ${listing}"
    sed -n 's/^no package provides //p' <<<"${listing}"
    return
  fi
  listing="$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n')"
  while read -r status name; do
    if [[ "${status}" == installed ]]; then installed["${name}"]=1; fi
  done <<<"${listing}"
  for name in "${WANTED[@]}"; do
    if [[ -z "${installed[${name}]:-}" ]]; then printf '%s\n' "${name}"; fi
  done
}

as_root() {
  if [[ ${EUID} -eq 0 ]]; then
    "$@"
  else
    sudo -- "$@"
  fi >>"${LOG}" 2>&1 9>&-
}

apt() {
  # DPkg::Lock::Timeout waits for an unattended upgrade instead of failing beside it.
  as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l \
    apt-get --yes --quiet -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 "$@"
}

install_with_apt() {
  # A set-up that was killed may have left packages unpacked; apt-get refuses to go on until they are configured.
  as_root env DEBIAN_FRONTEND=noninteractive dpkg --configure -a ||
    fail_with_log "${LOG}" "dpkg --configure -a failed: a package that an earlier installation left is broken"
  apt update || fail_with_log "${LOG}" "apt-get update failed; check network and apt sources"
  apt install --no-install-recommends "$@" || fail_with_log "${LOG}" "apt-get install failed for: $*"
}

install_with_dnf() {
  local name absent
  if as_root dnf --assumeyes --setopt=install_weak_deps=False install "$@"; then return; fi
  absent="$(sed -n 's/^No match for argument: //p' "${LOG}")"
  [[ -n "${absent}" ]] || fail_with_log "${LOG}" "dnf install failed for: $*"
  for name in ${absent}; do
    say "no repository that is switched on has ${name}${REPOSITORY[${name}]:+ (it is in ${REPOSITORY[${name}]^^})}" >&2
  done
  die "dnf does not find every package" \
    "switch CRB and EPEL on, once, as root: dnf install dnf-plugins-core epel-release && dnf config-manager --set-enabled crb" \
    "then run this again. The whole output is in ${LOG}"
}

by_hand() { printf 'install what these packages hold, then run this again with BENCH_SKIP_PACKAGES=1: %s' "${WANTED[*]}"; }

main() {
  if [[ "${1:-}" == "--help" ]]; then
    sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
    return
  fi
  if [[ "${BENCH_SKIP_PACKAGES:-0}" == 1 ]]; then
    say "skipped on request (BENCH_SKIP_PACKAGES=1)"
    return
  fi
  local missing program manager=(apt-get dpkg-query) install=install_with_apt absent
  find_system
  if [[ "${1:-}" == "--names" ]]; then
    read_map "${@:2}"
    printf '%s\n' "${WANTED[@]}"
    return
  fi
  (($# > 0)) || set -- runtime
  read_map "$@"
  [[ -n "${SYSTEM}" ]] || die "this system is not Debian, Ubuntu or Enterprise Linux (/etc/os-release)" "$(by_hand)"
  if [[ "${SYSTEM}" == el ]]; then manager=(dnf rpm) install=install_with_dnf; fi
  for program in "${manager[@]}"; do
    type -P "${program}" >/dev/null || die "${program} is not on PATH, so packages can neither be looked up nor installed" \
      "put ${program} on PATH, or $(by_hand)"
  done
  missing="$(missing_packages)"
  if [[ -z "${missing}" ]]; then
    say "all ${#WANTED[@]} packages present"
    return
  fi
  if [[ ${EUID} -ne 0 ]] && ! type -P sudo >/dev/null; then
    die "packages are missing and neither root nor sudo is at hand" "as root: ${manager[0]} install ${missing//$'\n'/ }"
  fi
  take_lock "${CACHE_DIR}/packages.lock"
  # The previous holder of the lock may have installed them meanwhile.
  missing="$(missing_packages)"
  if [[ -n "${missing}" ]]; then
    mapfile -t absent <<<"${missing}"
    say "installing ${#absent[@]}: ${absent[*]}"
    say "output goes to ${LOG}"
    : >"${LOG}"
    "${install}" "${absent[@]}"
    missing="$(missing_packages)"
    [[ -z "${missing}" ]] || die "still missing after the installation: ${missing//$'\n'/ }" "the whole output is in ${LOG}"
  fi
  say "all ${#WANTED[@]} packages present after ${SECONDS} s"
}

main "$@"
