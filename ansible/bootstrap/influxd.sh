#!/usr/bin/env bash
# Puts InfluxDB 1.8.10's server at build/tools/influxd, built from source with Go (about a minute, once per user:
# the binary is cached). Promises: does nothing when it is there already; the file appears whole or not at all;
# starts nothing. Two runs at once build once.
#
# usage: influxd.sh
#        influxd.sh --purposes     prints go where a build is due and no Go that could do it is here: it then comes with the other packages
set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=lib-go.sh
source "${BOOTSTRAP_DIR}/lib-go.sh"

readonly VERSION=1.8.10
readonly GO_MINOR_MIN=19
readonly TOOL="${REPO_ROOT}/build/tools/influxd"
readonly CACHED="${CACHE_DIR}/influxd-${VERSION}"
scratch=""

is_wanted() {
  [[ -x "$1" ]] && [[ "$("$1" version 2>&1)" == *"v${VERSION} "* ]]
}

build() {
  local go log="${CACHE_DIR}/influxd-build.log"
  go="$(need_go "${GO_MINOR_MIN}")"
  say "building InfluxDB ${VERSION} with $("${go}" env GOVERSION), about a minute (log: ${log})"
  # Remove the files of a killed build: the lock says that no build runs now.
  rm -rf -- "${CACHE_DIR}"/influxd-build.*/
  scratch="$(mktemp -d -- "${CACHE_DIR}/influxd-build.XXXXXX")"
  trap 'rm -rf -- "${scratch}"' EXIT
  # GOTOOLCHAIN=local: use the Go that was found, never fetch another. No cgo: the binary needs no libraries.
  GOBIN="${scratch}" GOTOOLCHAIN=local GOFLAGS='' CGO_ENABLED=0 "${go}" install \
    -ldflags "-s -w -X main.version=${VERSION}" \
    "github.com/influxdata/influxdb/cmd/influxd@v${VERSION}" >"${log}" 2>&1 9>&- ||
    fail_with_log "${log}" "InfluxDB ${VERSION} did not build"
  is_wanted "${scratch}/influxd" || fail_with_log "${log}" \
    "the built binary does not call itself v${VERSION}: $("${scratch}/influxd" version 2>&1)"
  mv -f -- "${scratch}/influxd" "${CACHED}"
}

main() {
  if [[ "${1:-}" == --purposes ]]; then
    if ! is_wanted "${TOOL}" && ! is_wanted "${CACHED}" && [[ -z "$(find_go "${GO_MINOR_MIN}")" ]]; then printf 'go\n'; fi
    return
  fi
  if is_wanted "${TOOL}"; then
    say "InfluxDB ${VERSION} present"
    return
  fi
  take_lock "${CACHE_DIR}/influxd.lock"
  # The previous holder of the lock may have placed it meanwhile.
  if ! is_wanted "${TOOL}"; then
    is_wanted "${CACHED}" || build
    place_tool "${CACHED}" "${TOOL}"
  fi
  say "InfluxDB ${VERSION} placed at build/tools/influxd after ${SECONDS} s"
}

main "$@"
