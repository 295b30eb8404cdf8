"""What the market's pages say of each shipped scenario beside snb-100s: when a server of it is good, written down before its first run; what
the model leaves out; what was changed after results were seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Told:
    """Texts in Markdown. `good`: how it runs, and the criterion of truth.py."""

    title: str
    good: str
    left_out: str
    looked_at: str


HEAD = """# Self-qualification: what is sold, in `{scenario}`

This page is for who asks whether good hardware obtains a PASS in `{scenario}` as shipped. It is a part of
[what is sold](self-qualification-market.md), which has the catalogue. `make self-qualify SIMULATED=market SHIPPED={scenario}` wrote
it; the rows behind it are in `build/self-qualification/`. Change nothing here by hand.

{good}"""

THERMAL = Told(
    title="thermal",
    good="""The soak is at a readout unit's rate, for half an hour to an hour, until the drives throttle or settle. The servers are those of the
catalogue, drawn anew: single drives and md RAID 0, 5, 6 and 10 with XFS or ext4. The soak needs a file: raw drives are refused before
anything is changed, and are not drawn. Three of four buyers took only what by its data sheet is 5 % above the demand. Four of ten runs
have hidden faults, of those that can befall a soak.

A server is *good* where it lies 5 % inside every mandatory bound of `thermal`: no drive slowed itself down for heat while it was watched
(TH-01, TH-02); each stayed 5.25 K or more below its own warning temperature in every second of the soak (TH-03 asks for 5 K); what the
drives could have taken in each second would have kept a record at a demand 5 % larger, begun in any second, in a buffer 5 % smaller
(TH-04). That is asked of the model (`robot-suites/daq_bench/simulation/truth.py`), not of the verdict's code. TH-05 and TH-06 are
advisory and have no say.
""",
    left_out="""- The soak overwrites 64 GiB again and again. The model counts bytes since the purge: once as many as the drive holds are written, it
  collects as a full one does. A drive that keeps room free collects less.
- fio's rate is held as fio holds it: a second in which the target took less is made up for. Windows of the log are whole seconds.
- Drives have two time constants, of a minute or two: no heat sink, no inlet and no neighbour that warms up over an hour.
- A fio that ends before its time, but after the least time of the soak, did no harm by this truth.
""",
    looked_at="",
)

TOLD: Mapping[str, Told] = {"thermal": THERMAL}
