# shellcheck shell=bash
# Finding a Go that can build a server, installing the distribution's where there is none. Sourced after lib.sh, never run.

# find_go MINOR: prints the first go of 1.MINOR or newer, or nothing. Toolchains unpacked by hand are often not on PATH.
find_go() {
  local go version
  local candidates=(/usr/local/go/bin/go /usr/lib/go-*/bin/go)
  if go="$(type -P go)"; then candidates=("${go}" "${candidates[@]}"); fi
  for go in "${candidates[@]}"; do
    [[ -x "${go}" ]] || continue
    version="$(GOTOOLCHAIN=local "${go}" env GOVERSION)"
    if [[ "${version}" =~ ^go1\.([0-9]+) ]] && ((BASH_REMATCH[1] >= $1)); then
      printf '%s\n' "${go}"
      return
    fi
  done
}

# need_go MINOR: prints the same, or ends with an error and the remedy.
need_go() {
  local go
  go="$(find_go "$1")"
  if [[ -z "${go}" ]]; then
    say "no Go of 1.$1 or newer found; installing the distribution's" >&2
    "${BOOTSTRAP_DIR}/packages.sh" go >&2
    go="$(find_go "$1")"
  fi
  [[ -n "${go}" ]] || die "the distribution's Go is older than 1.$1" \
    "install a newer Go so that it is on PATH or in /usr/local/go, then run this again"
  printf '%s\n' "${go}"
}

# place_tool FROM TO: makes a copy, not a hard link: overwriting TO must not reach the cache (where the
# filesystem can, the copy shares its blocks). The copy is renamed into place, so that it appears whole.
place_tool() {
  local new="$2.new.$$"
  mkdir -p -- "$(dirname -- "$2")"
  cp --reflink=auto -- "$1" "${new}"
  mv -f -- "${new}" "$2"
}
