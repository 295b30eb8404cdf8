#!/usr/bin/env bash
# Configures and builds targets of native-writer/CMakeLists.txt in build/native-writer. Promises: a build tree of another checkout,
# which comes along with a copied or moved folder, is thrown away and never built in; two runs at once wait for each other; a failed
# build shows the compiler's words.
#
# usage: native.sh TARGET...      WERROR=ON makes warnings errors in this build tree from now on (CI does), WERROR=OFF no longer
set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

readonly SOURCES="${REPO_ROOT}/native-writer"
readonly BUILD="${REPO_ROOT}/build/native-writer"
readonly LOG="${REPO_ROOT}/build/logs/native.log"
TARGETS=""
readonly OPTIONAL=(hotstore netprobe daqwriter_portable) # left out where their static libraries are missing; CMake says why

# Prints what the cache of the build tree says about a variable; nothing where there is none.
cached() { sed -n "s/^$1:[A-Z]*=//p" -- "${BUILD}/CMakeCache.txt" 2>/dev/null || :; }

discard_foreign_trees() {
  local cache source
  for cache in "${REPO_ROOT}"/build/*/CMakeCache.txt; do
    [[ -f "${cache}" ]] || continue
    source="$(sed -n 's/^CMAKE_HOME_DIRECTORY:[A-Z]*=//p' -- "${cache}")"
    [[ "${source}" != "${SOURCES}" ]] || continue
    say "$(dirname -- "${cache}") was made from ${source:-nothing}, not from ${SOURCES}: it is made anew"
    rm -rf -- "$(dirname -- "${cache}")"
  done
}

is_configured() {
  [[ -f "${BUILD}/build.ninja" ]] || return 1
  [[ -z "${WERROR:-}" || "$(cached CMAKE_COMPILE_WARNING_AS_ERROR)" == "${WERROR}" ]]
}

configure() {
  cmake -S "${SOURCES}" -B "${BUILD}" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    ${WERROR:+-DCMAKE_COMPILE_WARNING_AS_ERROR="${WERROR}"} >"${LOG}" 2>&1 9>&- ||
    fail_with_log "${LOG}" "native-writer cannot be configured"
}

# has TARGET: whether this build tree has it.
has() { [[ $'\n'"${TARGETS}" == *$'\n'"$1: phony"* ]]; }

list_targets() { TARGETS="$(ninja -C "${BUILD}" -t targets all)"; }

# leaves_out NAME: whether it is one that may be missing, and is.
leaves_out() { [[ " ${OPTIONAL[*]} " == *" $1 "* ]] && ! has "$1"; }

main() {
  (($# > 0)) || die "name the targets to build, such as daqwriter"
  need_writable "${REPO_ROOT}/build/logs"
  take_lock "${REPO_ROOT}/build/locks/native.lock"
  discard_foreign_trees
  is_configured || configure
  list_targets
  local name targets=() fresh=""
  for name in "$@"; do
    if leaves_out "${name}" && [[ -z "${fresh}" ]]; then # its libraries may have been installed since
      configure
      list_targets
      fresh=1
    fi
    if leaves_out "${name}"; then
      say "${name} is left out: $(cached "BENCH_WITHOUT_${name}")"
    else
      targets+=("${name}")
    fi
  done
  ((${#targets[@]} > 0)) || die "nothing of $* can be built here"
  cmake --build "${BUILD}" --target "${targets[@]}" >"${LOG}" 2>&1 9>&- || fail_with_log "${LOG}" "${targets[*]} did not build"
  say "${targets[*]} ready after ${SECONDS} s"
}

main "$@"
