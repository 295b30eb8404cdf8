"""The drives' rate against their temperature at the same moment: whether heat costs speed, and from how many degrees on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daq_bench.bench_report.base.units import count, percent
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import INK
from daq_bench.bench_report.figures.drives import AT_WORK, temperatures
from daq_bench.bench_report.reading.dataset.bundle import Bundle

STEADY = frozenset({"thermal", "saturation", "endurance", "steady_state"})  # others ask for a rate of their own
SPAN_K, FEWEST = 5.0, 30  # degrees and samples below which nothing can be seen
RATES = 24  # rows
LEAST_IN_COLUMN = 3  # samples: fewer have no median worth a line
FALL = 0.05  # of the rate: less is no fall
HIGHEST = 95  # percentile of a drive's own rates that counts as its highest: one odd sample must not
HEIGHT_MM, NAME = 52.0, "heat-and-rate"
Numbers = NDArray[np.float64]


def heat_and_rate_figure(bundle: Bundle) -> Figure | None:
    """None where no load ran as fast as it could, or the drives kept their temperature."""
    pairs = pairs_of(bundle)
    if pairs is None or pairs.shape[1] < FEWEST or np.ptp(pairs[0]) < SPAN_K:
        return None
    degrees, rates = pairs[0], 100 * pairs[1]
    across = np.arange(np.floor(degrees.min()), np.ceil(degrees.max()) + 1.001)
    up = np.linspace(0, rates.max() * 1.0001, RATES + 1)
    counts = np.histogram2d(rates, degrees, bins=(up, across))[0]
    places = np.digitize(degrees, across) - 1
    medians = np.array([
        np.median(rates[places == column]) if np.sum(places == column) >= LEAST_IN_COLUMN else np.nan
        for column in range(len(across) - 1)
    ])  # fmt: skip
    title = "Rate against temperature"
    with sheet(NAME, HEIGHT_MM) as (drawing, (axes,)):
        extent = (float(across[0]), float(across[-1]), 0.0, float(up[-1]))
        axes.heat(np.where(counts > 0, counts, np.nan), extent, "samples", logarithmic=True)
        middle = (across[:-1] + across[1:]) / 2
        axes.plot(middle, medians, color="white", linewidth=2.6, zorder=4)
        axes.plot(
            middle,
            medians,
            color=INK,
            linewidth=1.1,
            marker="o",
            markersize=2.5,
            label="median at each degree",
            zorder=5,
        )
        axes.set_ylim(0, extent[3])
        axes.name_axes("the drive's temperature at that moment (\u00b0C)", "of its own highest rate (%)")
        axes.legend_above()
        alt = f"{title}: {count(pairs.shape[1])} samples from {across[0]:.0f} to {across[-1]:.0f} \u00b0C."
    caption = (
        f"Every sample of a drive's rate as a share of its own highest ({HIGHEST}th percentile), so that drives can be laid upon each "
        f"other, beside its temperature at that moment; n = {count(pairs.shape[1])}, of moments at which it wrote at more than "
        f"{AT_WORK:.0%} of that, under {_loads(bundle)}. That both change together does not say which one follows "
        "the other."
    )
    return drawing.figure(title, caption, alt, _see(middle, medians))


def _loads(bundle: Bundle) -> str:
    return " and ".join(name.replace("_", " ") for name in bundle.run.scenario.workloads if name in STEADY)


def pairs_of(bundle: Bundle) -> Numbers | None:
    """Returns (degrees, share of the drive's own highest rate) of all drives of the target while a steady load ran."""
    host, target = bundle.host, bundle.run.target
    steady = STEADY & set(bundle.run.scenario.workloads)
    if host is None or target is None or not steady:
        return None
    spans = [(phase.start_s, phase.end_s) for phase in bundle.phases if phase.name in steady]
    found = []
    names = tuple(one.name for one in target.devices if not one.raid_level)
    for name, (read_at, degrees) in temperatures(host, names).items():
        if name not in host.disk_write_bytes_per_s:
            continue
        times, rates = host.disk_write_bytes_per_s[name]
        keep = (times >= read_at[0]) & (times <= read_at[-1]) & (rates > 0)
        if spans:
            keep &= np.any([(times >= start) & (times <= end) for start, end in spans], axis=0)
        if not keep.any():
            continue
        shares = rates[keep] / np.percentile(rates[keep], HIGHEST)
        found.append(np.array((np.interp(times[keep], read_at, degrees), shares))[:, shares > AT_WORK])
    return np.concatenate(found, axis=1) if found else None


def _see(middle: Numbers, medians: Numbers) -> str:
    known = np.flatnonzero(np.isfinite(medians))
    if known.size < 2:
        return "Too few samples at any two temperatures for a comparison: 1 degree has enough at most."
    cool, hot = known[0], known[-1]
    change = medians[hot] / medians[cool] - 1
    ends = " and ".join(f"{percent(medians[at])} at {middle[at]:.0f}\u202f\u00b0C" for at in (cool, hot))
    if change > -FALL:
        return f"No fall of the rate with the temperature: {ends}, of a drive's own highest."
    first = next(at for at in known if np.nanmax(medians[at:]) < (1 - FALL) * medians[cool])
    lasting = f"from {middle[first]:.0f}\u202f\u00b0C on it stays lower"
    return f"Warm drives write {percent(-100 * change)} slower: {ends} of their own highest; {lasting}."
