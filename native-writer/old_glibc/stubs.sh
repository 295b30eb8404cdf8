#!/bin/sh
# Makes, in DIRECTORY, what a program is linked against so that it runs on a glibc of VERSION or newer: libraries of the names and with the
# symbols of this system's glibc and no code, each symbol in the newest of its versions that is no newer than VERSION (where all are newer:
# in its oldest, which the linked program then asks for); and the tables of names that glibc of VERSION lacks (shims.cpp).
# usage: stubs.sh DIRECTORY VERSION COMPILER
set -eu
directory="$1" version="$2" compiler="$3"
mkdir -p "${directory}"

# stub NAME: NAME (libc.so.6) in the directory. Symbols of one address stay of one address: a program that copies `environ` has to get what
# glibc calls `__environ`.
stub() {
  readelf --wide --dyn-syms "$("${compiler}" -print-file-name="$1")" |
    awk '$7 != "UND" && ($5 == "GLOBAL" || $5 == "WEAK") && $4 != "TLS" && $8 ~ /@GLIBC_[0-9]/ { print $2, $3, $4, $8 }' | sort |
    awk -v newest="${version}" -v map="${directory}/$1.map" '
      function number(text, parts) { split(text, parts, "."); return parts[1] * 1e6 + parts[2] * 1e3 + parts[3] }
      {
        split($4, word, /@+GLIBC_/); name = word[1]; key = number(word[2])
        if (!(name in best)) order[++count] = name
        good = key <= number(newest)
        if (!(name in best) || (good && (!fits[name] || key > best[name])) || (!good && !fits[name] && key < best[name])) {
          best[name] = key; fits[name] = good; version_of[name] = word[2]; address[name] = $1; size[name] = $2; kind[name] = $3
        }
      }
      END {
        for (at = 1; at <= count; at++) {
          name = order[at]; seen[version_of[name]] = 1
          printf ".symver stub_%d, %s@@GLIBC_%s\n.globl stub_%d\n", at, name, version_of[name], at
          if (kind[name] != "OBJECT") { printf ".text\n.type stub_%d, %%function\nstub_%d:\n", at, at; continue }
          at_address = address[name]
          objects[at_address] = objects[at_address] sprintf(".type stub_%d, %%object\n.size stub_%d, %s\nstub_%d:\n", at, at, size[name], at)
          if (size[name] > room[at_address]) room[at_address] = size[name]
        }
        print ".section .note.GNU-stack,\"\",%progbits\n.bss"
        for (one in objects) printf ".balign 32\n%s.space %s\n", objects[one], room[one] + 32
        for (one in seen) print "GLIBC_" one " { local: stub_*; };" > map
      }' >"${directory}/$1.s"
  "${compiler}" -shared -nostdlib -Wl,-soname,"$1" -Wl,--version-script="${directory}/$1.map" -x assembler "${directory}/$1.s" \
    -o "${directory}/$1"
}

# names PREFIX HEADER: its numbers as the cases of a switch.
names() {
  echo "#include <$2>" | "${compiler}" -x c++ -E -dM - |
    awk -v prefix="$1" '$2 ~ "^" prefix "[A-Z0-9]+$" && $3 ~ /^[0-9]+$/ && !seen[$3]++ { printf "case %s: return \"%s\";\n", $3, $2 }'
}

stub libc.so.6
stub libm.so.6
ln -sf libm.so.6 "${directory}/libm.so"
sed "s#[^ ]*/libc\.so\.6#\"${directory}/libc.so.6\"#" "$("${compiler}" -print-file-name=libc.so)" >"${directory}/libc.so"
# Parts of libc since 2.34, libraries of their own before.
for name in libpthread.so.0 libdl.so.2; do
  "${compiler}" -shared -nostdlib -Wl,-soname,"${name}" -x c++ /dev/null -o "${directory}/${name}"
done
names E errno.h >"${directory}/error_names.inc"
names SIG signal.h >"${directory}/signal_names.inc"
