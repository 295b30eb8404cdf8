"""Exit statuses of the commands; the package's own text says what each means."""

from __future__ import annotations

from daq_bench.bench_model.documents import verdict as outcomes

EXIT = {outcomes.PASS: 0, outcomes.FAIL: 1, outcomes.ERROR: 2, outcomes.INADMISSIBLE: 3}
DRIFT = 4
FIRMWARE_LEFT = 5  # of restore: all went back but what the firmware refuses
INTERRUPTED = 130
WORST_FIRST = (INTERRUPTED, EXIT[outcomes.ERROR], EXIT[outcomes.FAIL], EXIT[outcomes.INADMISSIBLE])
