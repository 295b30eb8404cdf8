#!/bin/sh
# The portable daqwriter needs glibc alone, and ISA-L only as the file that it brings with it; and it runs.
# usage: portable_test.sh DIRECTORY     (where CMake put it)
set -eu
program="$1/daqwriter"
needed="$(readelf --wide --dynamic "${program}" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')"
echo "needs: $(echo "${needed}" | tr '\n' ' ')"
echo "${needed}" | grep -q '^libc\.so' # or readelf said nothing that we understand
for name in ${needed}; do
  case "${name}" in
    libc.so.* | libm.so.* | ld-linux*) continue ;;
  esac
  if [ "${name}" != libisal.so.2 ] || [ ! -f "$1/lib/${name}" ]; then
    echo "it needs ${name}, which is neither glibc's nor in lib/ beside it"
    exit 1
  fi
done
"${program}" --version
"${program}" checksum --help > /dev/null
