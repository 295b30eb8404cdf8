#!/usr/bin/env bash
# Builds the fuzzers and runs each of them, from its corpus in the tree and from what earlier runs found; one line
# of result for each. Exit 1 if one found something: its input is then named, for the corpus.
#
# usage: run.sh SECONDS [SEED]     each fuzzer so long; the same seed tries the same inputs in the same order
#        run.sh --share MINUTES    all of them together so long
set -euo pipefail
root="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)"
corpus="${root}/native-writer/tests/fuzz/corpus"
build="${root}/build/fuzz"
fuzzers=(record_header trailer record events manifest ack_log)

die() {
  echo "fuzz: $*" >&2
  exit 2
}

if [[ "${1:-}" == --share ]]; then
  [[ "${2:-}" =~ ^[1-9][0-9]{0,4}$ ]] || die "minutes '${2:-}': give a whole number from 1 on"
  pairs=$(((${#fuzzers[@]} + 1) / 2))
  each=$((($2 * 60 + pairs - 1) / pairs))
  seed=0 # libFuzzer then takes another one each time
else
  [[ "${1:-}" =~ ^[1-9][0-9]{0,6}$ ]] || die "seconds '${1:-}': give a whole number from 1 on"
  each=$1
  seed="${2:-0}"
  [[ "${seed}" =~ ^[0-9]{1,9}$ ]] || die "seed '${seed}': give a whole number"
fi

# The distribution's own clang, whichever version it is; one without a number may be another's.
compiler="$(type -P clang++ || compgen -c clang++- | sort -V | tail -n 1)" || compiler=""
[[ -n "${compiler}" ]] || die "no clang++: install clang and libclang-rt-dev (make packages-test)"
cmake -S "${root}/native-writer" -B "${build}" -G Ninja --log-level=WARNING -DDAQWRITER_FUZZ=ON \
  -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER="${compiler}" >/dev/null
cmake --build "${build}" | tail -n 1

fuzz() {
  local name=$1 found="${build}/found/$1" log="${build}/$1.log" status=0 runs
  mkdir -p "${found}" "${build}/crashes"
  "${build}/tests/fuzz/fuzz_${name}" -max_total_time="${each}" -seed="${seed}" -timeout=20 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix="${build}/crashes/${name}-" "${found}" "${corpus}/${name}" >"${log}" 2>&1 || status=$?
  runs="$(sed -n 's/^stat::number_of_executed_units: *//p' "${log}")"
  if ((status == 0)); then
    echo "${name}: ${runs:-0} runs in ${each} s, nothing found"
  else
    echo "${name}: FAILED: $(grep -m 1 -E 'ERROR|runtime error' "${log}" || tail -n 1 "${log}"); $(grep -m 1 'Test unit written' "${log}" || echo "see ${log}")"
    return 1
  fi
}

# Two at a time, each keeps one CPU busy.
failed=0
for ((i = 0; i < ${#fuzzers[@]}; i += 2)); do
  fuzz "${fuzzers[i]}" &
  first=$!
  if ((i + 1 < ${#fuzzers[@]})); then fuzz "${fuzzers[i + 1]}" || failed=1; fi
  wait "${first}" || failed=1
done
exit "${failed}"
