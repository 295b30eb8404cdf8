"""The output of the OFED perftest tools (`ib_write_bw`, `ib_read_bw`, `ib_send_bw` with --report_gbits; `ib_read_lat`). Strict, pure.

One table with one row is expected, closed by its rule: a table that is cut off, of another size or in other units is a ValueError."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from daq_bench.bench_model.base.units import in_digits
from daq_bench.workloads.lan.plan import GBIT

BANDWIDTH_HEAD = ["#bytes", "#iterations", "BW peak[Gb/sec]", "BW average[Gb/sec]", "MsgRate[Mpps]"]
LATENCY_HEAD = [
    "#bytes", "#iterations", "t_min[usec]", "t_max[usec]", "t_typical[usec]", "t_avg[usec]", "t_stdev[usec]", "99% percentile[usec]",
    "99.9% percentile[usec]",
]  # fmt: skip
DURATION_HEAD = [
    "#bytes",
    "#iterations",
    "t_avg[usec]",
    "tps average",
]  # with -D: no array of samples, so the mean alone
WORDS = re.compile(
    r"#\w+|BW (?:peak|average)\[[^\]]+\]|MsgRate\[[^\]]+\]|[\d.]+% percentile\[usec\]|tps average|t_\w+\[usec\]|CPU_Util\[%\]|\S+"
)
RULE = re.compile(r"-{20,}")
MESSAGES_OF_MEGA = 1e6
AGREE = 0.01  # of the two columns, beyond what their last digits leave open


@dataclass(frozen=True)
class Bandwidth:
    """Mean over the measured time."""

    message_bytes: int
    messages: int
    bytes_per_s: float


@dataclass(frozen=True)
class Latency:
    """us; for ib_read_lat: of the whole read. `typical_us` is the median. With -D perftest knows the mean alone."""

    message_bytes: int
    messages: int
    mean_us: float
    typical_us: float | None = None
    p99_us: float | None = None
    max_us: float | None = None


def parse_bandwidth(text: str, message_bytes: int) -> Bandwidth:
    """The rate is read from that of two columns which has the finer last digit: 0.20 Gb/sec may be 2.5 % off. Raises ValueError."""
    head, row, words = _table(text)
    if [word for word in head if word != "CPU_Util[%]"] != BANDWIDTH_HEAD:
        raise ValueError(f"perftest's table has the columns {', '.join(head)}; bandwidth in Gb/sec was asked for")
    size, messages = _size(row, message_bytes), row[1]
    columns = [(row[at] * factor, _half_digit(words[at]) * factor)
               for at, factor in ((3, GBIT), (4, MESSAGES_OF_MEGA * size))]  # fmt: skip
    rate, open_ = min(columns, key=lambda pair: pair[1])
    if messages <= 0 or rate <= 0:
        raise ValueError(f"perftest moved nothing: {in_digits(messages, 9)} messages at {words[3]} Gb/sec")
    other, other_open = max(columns, key=lambda pair: pair[1])
    if abs(other - rate) > open_ + other_open + AGREE * rate:
        raise ValueError(f"perftest's {words[3]} Gb/sec and {words[4]} Mpps of {size} B do not agree")
    return Bandwidth(size, int(messages), rate)


def parse_latency(text: str, message_bytes: int) -> Latency:
    """Raises ValueError."""
    head, row, _ = _table(text)
    size = _size(row, message_bytes)
    if head == DURATION_HEAD:
        found = Latency(size, int(row[1]), row[2])
    elif head == LATENCY_HEAD:
        found = Latency(size, int(row[1]), row[5], row[4], row[7], row[3])
    else:
        raise ValueError(f"perftest's table has the columns {', '.join(head)}; a latency was asked for")
    if found.messages <= 0 or found.mean_us <= 0:
        raise ValueError(f"perftest measured nothing: {found.messages} messages, mean {in_digits(found.mean_us, 9)} us")
    return found


def _size(row: list[float], message_bytes: int) -> int:
    if row[0] != message_bytes:
        raise ValueError(f"perftest measured messages of {in_digits(row[0], 9)} B; {message_bytes} B were asked for")
    return message_bytes


def _half_digit(word: str) -> float:
    """Returns the largest error of rounding: 0.005 for 0.20."""
    return 0.5 * 10.0 ** -len(word.partition(".")[2])


def _table(text: str) -> tuple[list[str], list[float], list[str]]:
    """(columns, values of the one row, its words)."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    heads = [index for index, line in enumerate(lines) if line.startswith("#bytes")]
    if len(heads) != 1:
        said = lines[-1][:160] if lines else "it printed nothing"
        raise ValueError(f"perftest printed {len(heads) or 'no'} tables: {said}")
    rest = lines[heads[0] + 1 :]
    ends = [index for index, line in enumerate(rest) if RULE.fullmatch(line)]
    if not ends:
        raise ValueError("perftest's table is cut off: no rule closes it")
    rows = [line for line in rest[: ends[0]] if line[0].isdigit() or line[0] in "-+."]
    if len(rows) != 1:
        raise ValueError(f"perftest's table has {len(rows)} rows; one was asked for")
    head = WORDS.findall(lines[heads[0]])
    try:
        row = [float(word) for word in rows[0].split()]
    except ValueError:
        raise ValueError(f"perftest's row holds something else than numbers: {rows[0][:160]}") from None
    if len(row) != len(head) or not all(math.isfinite(value) and value >= 0 for value in row):
        raise ValueError(
            f"perftest's row does not fit its {len(head)} columns (numbers that run together are not guessed apart): {rows[0][:160]}"
        )
    return head, row, rows[0].split()
