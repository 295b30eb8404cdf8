"""The words of the report, defined once. Prose only; no number of a run stands here."""

from __future__ import annotations

from daq_bench.bench_model.verdict.conclusion import REHEARSAL, REHEARSAL_FAILED

TERMS: tuple[tuple[str, str], ...] = (
    ("GB, GiB", "1 GB = 10\u2079 bytes; 1 GiB = 2\u00b3\u2070 bytes = 1.074 GB. Network and record rates are given in GB/s, the block-size "
     "scan in GiB/s as in the paper it is compared with. No figure mixes the two."),
    ("Nominal, real demand", "10 GB/s is the name of one readout unit's load. Its links really deliver links \u00d7 rate "
     "\u00d7 size of a superchunk; requirements refer to that."),
    ("Scale", "The share of one readout unit's real demand that the run offered. It multiplies bounds on rates, and no others."),
    ("Superchunk", "A link's unit of data: twelve detector frames in one piece, offered at a fixed pace, lost or stored as a whole."),
    ("Offered, stored", "Offered: handed over by the paced source. Stored: its write was completed by the kernel with O_DIRECT."),
    ("Backlog", "Data that arrived but is not stored yet: in ring buffers and blocks being written, whose size is its capacity."),
    ("Transient buffer needed", "The most that arrivals ran ahead of durable data at any time in the record: the memory that a server must "
     "set aside to survive this record without loss."),
    ("BUSY", "Asserted when the fullest ring buffer passes 80 % and released at 50 %. A continuous record cannot be slowed, so BUSY is an "
     "event with a time and a length; the next stage is loss."),
    ("Drain", "The time from the last arrival until everything is stored."),
    ("Read-back", "The whole record is read from the target with O_DIRECT; every payload is computed again from the seed and compared, "
     "and every checksum, identity and position is tested."),
    ("Plateau", "The block sizes from which on a larger block brings no more throughput; the exact rule stands under the figure."),
    ("Knee", "The first offered rate at which a latency curve leaves its low part; the exact rule stands beside the figure."),
    ("Inhibit", "A trigger decision that was vetoed, a BUSY episode, or a lost superchunk; a stable rate has none."),
    ("Published", "A figure that somebody else stated of a device, with its conditions and source: drawn as a reference, never judged."),
    ("Fresh, preconditioned", "Fresh: purged, all blocks free. Preconditioned: then written twice over in 128 KiB blocks, "
     "which slows flash."),
    ("Steady state", "Five successive rounds whose tracking variable varies by at most 20 % of its mean and whose best line by at most "
     "10 % (SNIA SSS PTS). A test that does not get there has no figures."),
    ("Cliff", "The point of a pass over a fresh target at which the rate falls for good, since a fast cache is full; the exact rule stands "
     "beside the figure."),
    ("[P]", "Beside a requirement: a threshold that this project chose; all others stand in the source named."),
    ("Margin", "How far inside its bound a value lies, in the bound's unit; negative: outside."),
    ("Confidence interval", "Where the judged value could lie, were the same measured again: two-sided, at 95 % unless said "
     "otherwise, so that a candidate at the bound is wrongly met in at most 2.5 % of runs and wrongly missed in at most 2.5 %."),
    ("Met, missed, undecided", "Met: the whole interval lies inside the bound, by at least the guard band. Missed: all of it lies outside. "
     "Else undecided: a longer measurement, or more repetitions, may decide."),
    ("Guard band", "A distance to the bound that a requirement may ask for beyond the interval, for what the statistics do not see, "
     "such as a meter's own error (JCGM 106:2012)."),
    ("PASS", "Every mandatory requirement is met, and the evidence counts."),
    ("FAIL", "The candidate misses a mandatory requirement."),
    ("ERROR", "The bench failed. The run says nothing about the candidate."),
    ("INADMISSIBLE", "The evidence does not count (less than the whole load, a gap, another machine or tuning), or does not decide."),
    (REHEARSAL, "A run that was asked for less than the profile demands, and met or left open each mandatory requirement. Its "
     "outcome in verdict.json is INADMISSIBLE: it shows that the bench works, and decides nothing about buying."),
    (REHEARSAL_FAILED, "A run that was asked for less than the profile demands, and missed a mandatory requirement. Its outcome in "
     "verdict.json is FAIL. It decides nothing about buying either: it shows what to look into before the whole load."),
    ("Advisory", "A requirement that is measured and shown but does not decide the outcome."),
)  # fmt: skip
