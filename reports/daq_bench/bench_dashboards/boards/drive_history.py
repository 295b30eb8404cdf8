"""*Drive history*: the drives' own accounts over months, from one value a minute, which is kept when the points as they came are gone."""

from __future__ import annotations

from daq_bench.bench_dashboards.boards.drive_health import newest, wear
from daq_bench.bench_dashboards.boards.drive_heat import heat, links_and_arrays
from daq_bench.bench_dashboards.boards.drive_source import BY_THE_MINUTE
from daq_bench.bench_dashboards.common import DRIVE_HISTORY, links
from daq_bench.bench_dashboards.dashboard import Dashboard
from daq_bench.bench_dashboards.furniture import AS_ANSWERED, TagValues
from daq_bench.bench_dashboards.influxql import HISTORY, MINUTES
from daq_bench.bench_dashboards.layout import Section

CANDIDATE = TagValues(
    "host",
    "Candidate",
    "Servers that were ever judged; first the one that was judged last",
    "host",
    "bench_run",
    policy=HISTORY,
    field="started_ns",
    newest_first=True,
    sort=AS_ANSWERED,
)
DEVICE = TagValues(
    "device",
    "Drive",
    "Drives and arrays by the kernel's name; drives that were replaced too",
    "device",
    "block_device",
    policy=MINUTES,
    field="last_read_ios",
    where=(("host", "host"),),
    several=True,
    all_of_them=True,
)

DASHBOARD = Dashboard(
    uid=DRIVE_HISTORY,
    title="Drive history",
    description="Each drive's own account of its wear, errors, heat and link over months, of all runs; one value a minute, kept for ever.",
    sections=(
        Section("", newest(BY_THE_MINUTE)),
        wear(BY_THE_MINUTE),
        heat(BY_THE_MINUTE),
        links_and_arrays(BY_THE_MINUTE),
    ),
    variables=(CANDIDATE, DEVICE),
    links=links(DRIVE_HISTORY),
    begin="now-180d",
)
