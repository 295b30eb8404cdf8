#!/usr/bin/env bash
# Puts InfluxDB 2.9.1's server at build/tools/influxd2, for the tests against InfluxDB 2 alone: built from source with Go
# and Rust (about six minutes on two cores, once per user: the binary is cached). Promises: does nothing when it is there
# already; the file appears whole or not at all; starts nothing. Two runs at once build once.
#
# usage: influxd2.sh
set -euo pipefail
# shellcheck source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=lib-go.sh
source "${BOOTSTRAP_DIR}/lib-go.sh"

readonly VERSION=2.9.1
# This is the first version that fetches a newer Go by itself (through the Go module proxy) when a module asks for one.
readonly GO_MINOR_MIN=21
readonly RUST_MINOR_MIN=83
readonly TOOL="${REPO_ROOT}/build/tools/influxd2"
readonly CACHED="${CACHE_DIR}/influxd-${VERSION}"
scratch=""

is_wanted() {
  [[ -x "$1" ]] && [[ "$("$1" version 2>&1)" == *"InfluxDB ${VERSION} "* ]]
}

# Prints the minor version of the cargo that would be used; 0 where there is none.
rust_minor() {
  local version
  if type -P cargo >/dev/null && version="$(RUSTUP_TOOLCHAIN=stable cargo --version 2>/dev/null)" &&
    [[ "${version}" =~ ^cargo\ 1\.([0-9]+) ]]; then
    printf '%s\n' "${BASH_REMATCH[1]}"
  else
    printf '0\n'
  fi
}

# InfluxDB's query language is a Rust library, which Go finds through InfluxData's own stand-in for pkg-config.
need_rust() {
  if (($(rust_minor) == 0)); then
    say "no Rust found; installing the distribution's" >&2
    "${BOOTSTRAP_DIR}/packages.sh" rust >&2
  fi
  (($(rust_minor) >= RUST_MINOR_MIN)) || die "InfluxDB ${VERSION} needs Rust 1.${RUST_MINOR_MIN} or newer (cargo), found 1.$(rust_minor)" \
    "install a newer Rust so that cargo is on PATH, or put a binary of InfluxDB ${VERSION} at ${CACHED}; then run this again"
}

build() {
  local go log="${CACHE_DIR}/influxd2-build.log"
  go="$(need_go "${GO_MINOR_MIN}")"
  need_rust
  say "building InfluxDB ${VERSION} with $("${go}" env GOVERSION) and $(cargo --version), some minutes (log: ${log})"
  rm -rf -- "${CACHE_DIR}"/influxd2-build.*/ # what a build that was killed has left
  scratch="$(mktemp -d -- "${CACHE_DIR}/influxd2-build.XXXXXX")"
  trap 'rm -rf -- "${scratch}"' EXIT
  # We use a module of our own, since `go install ...@version` cannot build this main package. Where rustup is in charge,
  # it is told to use the stable toolchain, whatever the directory asks for.
  (
    cd -- "${scratch}"
    export GOBIN="${scratch}/bin" GOTOOLCHAIN=auto GOFLAGS='' CGO_ENABLED=1 RUSTUP_TOOLCHAIN=stable
    "${go}" install github.com/influxdata/pkg-config@latest
    "${go}" mod init daq-storage-bench/influxd2
    "${go}" get "github.com/influxdata/influxdb/v2/cmd/influxd@v${VERSION}"
    PKG_CONFIG="${GOBIN}/pkg-config" "${go}" build -mod=mod -tags 'sqlite_foreign_keys sqlite_json' \
      -ldflags "-s -w -X main.version=${VERSION}" -o influxd github.com/influxdata/influxdb/v2/cmd/influxd
  ) >"${log}" 2>&1 9>&- || fail_with_log "${log}" "InfluxDB ${VERSION} did not build"
  is_wanted "${scratch}/influxd" || fail_with_log "${log}" \
    "the built binary does not call itself ${VERSION}: $("${scratch}/influxd" version 2>&1)"
  mv -f -- "${scratch}/influxd" "${CACHED}"
}

main() {
  if is_wanted "${TOOL}"; then
    say "InfluxDB ${VERSION} present"
    return
  fi
  take_lock "${CACHE_DIR}/influxd2.lock"
  # The previous holder of the lock may have placed it meanwhile.
  if ! is_wanted "${TOOL}"; then
    is_wanted "${CACHED}" || build
    place_tool "${CACHED}" "${TOOL}"
  fi
  say "InfluxDB ${VERSION} placed at build/tools/influxd2 after ${SECONDS} s"
}

main
