#!/bin/sh
# The programs for candidates need glibc of VERSION or an older one, and ISA-L only as the file that goes with daqwriter; and they run.
# usage: portable_test.sh VERSION PROGRAM...
set -eu
version="$1"
shift
for program in "$@"; do
  needed="$(readelf --wide --dynamic "${program}" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')"
  echo "${needed}" | grep -q '^libc\.so' # or readelf said nothing that we understand
  carried=""
  for name in ${needed}; do
    case "${name}" in
      # glibc's own, two of them before 2.34 alone; and libgcc_s, without which glibc's packages are not installed anywhere
      libc.so.* | libm.so.* | ld-linux* | libpthread.so.0 | libdl.so.2 | libgcc_s.so.1) continue ;;
    esac
    carried="$(dirname "${program}")/lib/${name}"
    if [ "${name}" != libisal.so.2 ] || [ ! -f "${carried}" ]; then
      echo "${program} needs ${name}, which is neither glibc's nor in lib/ beside it"
      exit 1
    fi
  done
  for file in "${program}" ${carried}; do
    newest="$(readelf --wide -V "${file}" | grep -o 'GLIBC_[0-9][0-9.]*' | sort -u -V | tail -n 1)"
    echo "${file}: ${newest}; $(echo "${needed}" | tr '\n' ' ')"
    if [ "$(printf '%s\n' "${newest}" "GLIBC_${version}" | sort -V | tail -n 1)" != "GLIBC_${version}" ]; then
      echo "${file} wants ${newest}, and GLIBC_${version} is the newest that it may: give old_glibc/shims.cpp what of it is new:"
      nm --dynamic "${file}" | grep "@${newest}"
      exit 1
    fi
  done
  "${program}" --version
  # A usage error: an exception is thrown, passed through frames with destructors, and caught.
  status=0
  "${program}" --no-such-option >/dev/null 2>&1 || status=$?
  [ "${status}" -eq 2 ]
done
# What replaces glibc's own: stat, and the names of errors.
said="$("$1" verify --target /no-such-file 2>&1)" && exit 1
echo "${said}" | grep -q 'No such file or directory (ENOENT)'
"$1" checksum --help >/dev/null
