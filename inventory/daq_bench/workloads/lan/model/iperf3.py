"""The output of `iperf3 -J`, as numbers. Strict: output that is not whole, or states an error, is a ValueError in one sentence. Pure."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from daq_bench.bench_model.bundle.files import strict

BITS = 8.0
ENDED_EARLY_SHARE = 0.9  # [P] of the time asked for; a transfer that comes to its end takes all of it and some ms more


DOCUMENTS_MAX = 10  # that are counted
FRAGMENT_SHARE = 0.5  # [P] of the usual interval: a shorter one is what was left at the end


@dataclass(frozen=True)
class Flow:
    """One client's transfer without its omitted begin; goodput in B/s at the receiver. `reverse_bytes_per_s`: of --bidir."""

    bytes_per_s: float
    sent_bytes: int
    seconds: float
    sent_again: int  # TCP segments
    reverse_bytes_per_s: float | None
    mss_bytes: int | None
    congestion: str | None
    version: str
    samples_bytes_per_s: tuple[float, ...] = ()  # of the sender, in the order of time

    @property
    def sent_again_share(self) -> float | None:
        """Segments sent again over all segments that the bytes took; None where the segment size is not told."""
        if not self.mss_bytes or not self.sent_bytes:
            return None
        return self.sent_again * self.mss_bytes / self.sent_bytes


def parse(text: str) -> Flow:
    """Raises ValueError."""
    try:
        document = strict(_between_braces(text), doubled_keys=True)
    except ValueError:
        if (printed := _documents(text)) > 1:
            raise ValueError(
                f"iperf3 printed {printed} JSON documents one behind the other, as 3.16 and 3.17 do: which of them holds is not "
                "known. Install iperf3 3.18 or newer, or 3.15 or older"
            ) from None
        raise ValueError(f"iperf3's output is no whole JSON document: it ends in {text[-40:]!r}") from None
    if not isinstance(document, dict):
        raise ValueError("iperf3's output is no JSON object")
    if "error" in document:
        raise ValueError(f"iperf3: {str(document['error'])[:200]}")
    try:
        return _flow(document)
    except ValueError as error:
        start = document.get("start")
        version = start.get("version") if isinstance(start, dict) else None
        raise ValueError(f"{str(version or 'iperf3 of an unknown version')[:80]}: {str(error)[:400]}") from None


def _between_braces(text: str) -> str:
    """The lines from the first that begins with a brace to the last that ends with one: a library's warning may stand around them."""
    lines = text.splitlines()
    first = next((at for at, line in enumerate(lines) if line.startswith("{")), 0)
    last = next((at for at in range(len(lines) - 1, first - 1, -1) if lines[at].rstrip().endswith("}")), len(lines) - 1)
    return "\n".join(lines[first : last + 1])


def _documents(text: str) -> int:
    """How many whole JSON documents a text is made of, at most `DOCUMENTS_MAX`; 0 where something else stands in it."""
    decoder, count, rest = json.JSONDecoder(), 0, text.lstrip()
    while rest and count < DOCUMENTS_MAX:
        try:
            _, end = decoder.raw_decode(rest)
        except (ValueError, RecursionError):
            return 0
        count, rest = count + 1, rest[end:].lstrip()
    return count


def _flow(document: dict[str, Any]) -> Flow:
    end, start = _part(document, "end"), _part(document, "start")
    sent, received = _part(end, "sum_sent"), _part(end, "sum_received")
    seconds = _number(sent, "seconds")
    if seconds <= 0:
        raise ValueError("iperf3 measured no time: sum_sent.seconds is not above 0")
    # Before 3.12 an answer whose server went away holds no error: figures of the time until then, and nothing that arrived.
    test = start.get("test_start")
    asked = _number(test, "duration") if isinstance(test, dict) and "duration" in test else 0.0
    if seconds < ENDED_EARLY_SHARE * asked:
        raise ValueError(f"iperf3's transfer ended after {seconds:.1f} s of the {asked:g} s that were asked for")
    if _number(sent, "bytes") > 0 and _number(received, "bits_per_second") == 0:
        raise ValueError(f"iperf3 sent {sent['bytes']:.0f} B, and the other side told of none that arrived")
    back = end.get("sum_received_bidir_reverse")
    mss = start.get("tcp_mss_default")
    return Flow(
        bytes_per_s=_number(received, "bits_per_second") / BITS,
        sent_bytes=int(_number(sent, "bytes")),
        seconds=seconds,
        sent_again=int(_number(sent, "retransmits")),
        reverse_bytes_per_s=_number(back, "bits_per_second") / BITS if isinstance(back, dict) else None,
        mss_bytes=mss if isinstance(mss, int) and mss > 0 else None,
        congestion=end.get("sender_tcp_congestion"),
        version=str(start.get("version", "")),
        samples_bytes_per_s=tuple(_samples(document)),
    )


def _samples(document: dict[str, Any]) -> Iterator[float]:
    rows = document.get("intervals", [])
    if not isinstance(rows, list) or not all(isinstance(one, dict) for one in rows):
        raise ValueError(f"iperf3's intervals are {str(rows)[:80]}: a list of objects was expected")
    counted = [whole for whole in (_part(one, "sum") for one in rows) if not whole.get("omitted")]
    seconds = [_number(whole, "seconds") if "seconds" in whole else None for whole in counted]
    usual_s = statistics.median([one for one in seconds if one is not None] or [0.0])
    samples: list[tuple[float, float]] = []  # B/s, seconds
    for whole, lasted_s in zip(counted, seconds, strict=True):
        rate, lasted_s = _number(whole, "bits_per_second") / BITS, usual_s if lasted_s is None else lasted_s
        if samples and min(lasted_s, samples[-1][1]) < FRAGMENT_SHARE * usual_s:
            # A fragment of a millisecond or so, at the end or at the begin, says nothing by itself: it belongs to its neighbour.
            before, before_s = samples.pop()
            rate, lasted_s = (before * before_s + rate * lasted_s) / (before_s + lasted_s), before_s + lasted_s
        samples.append((rate, lasted_s))
    yield from (rate for rate, _ in samples)


def _part(document: dict[str, Any], name: str) -> dict[str, Any]:
    found = document.get(name)
    if not isinstance(found, dict):
        raise ValueError(f"iperf3's output has no {name}: the transfer did not come to its end")
    return found


def _number(document: dict[str, Any], name: str) -> float:
    value = document.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        raise ValueError(f"iperf3's {name} is {value!r}: a number that is not negative was expected")
    return float(value)
