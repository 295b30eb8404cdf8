"""How long the bench's own InfluxDB keeps what: the set-up that it shares with the role, its adversaries, and the room that it takes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.bench_influx import influxql
from ansible.module_utils.bench_influx_storage import MEASUREMENTS, OPTIONS, Storage, differences
from dashboard_trials import by_the_minute
from influx_series import IN_HISTORY, NIGHT_NS, declared
from influx_series import write as write_nights
from ruamel.yaml import YAML

from daq_bench.bench_dashboards.trial import Server
from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.bundle.provenance import MANIFEST
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.influx import Influx
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.discovery.doctor import control_node
from daq_bench.rig.run.watch import Watch
from daq_bench.rig.telemetry import influx_room
from daq_bench.rig.telemetry.influx_room import FOR_EVER, RAW_MAX, RETENTION, Bounds, Room, Tidied, fullness
from daq_bench.rig.telemetry.influx_server import LocalInflux, create_database
from daq_bench.virtual_candidate.ports import free_ports

ROLE = Layout().ansible / "roles" / "influxdb"
NOW = datetime.now(UTC)  # of the test, see `one_day`
MIDNIGHT_S = 120  # a test that begins so near to it waits: InfluxDB's shards begin there, in UTC


@pytest.fixture(autouse=True)
def one_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """The points of a test, its own moment and the server's lie on one day."""
    while (now := datetime.now(UTC)).date() != (now + timedelta(seconds=MIDNIGHT_S)).date():
        time.sleep(1)
    monkeypatch.setitem(globals(), "NOW", now)


QUERIES = [f"bench_1m_{name}" for name in sorted(MEASUREMENTS)]
QUERIES_MISSING = [f"continuous query {name} is missing" for name in QUERIES]
POLICIES = {"raw": ("0s", True), "bench_1m": ("0s", False), "history": ("0s", False)}


def policies(url: str, database: str) -> dict[str, tuple[str, bool]]:
    rows = influxql(url, "", f'SHOW RETENTION POLICIES ON "{database}"')
    return {row["name"]: (row["duration"], row["default"]) for row in rows}


def queries(url: str, database: str) -> dict[str, str]:
    rows = influxql(url, "", "SHOW CONTINUOUS QUERIES")
    return {row["name"]: row["query"] for row in rows if row["_series"] == database}


def write(url: str, bucket: str, *points: tuple[float, str]) -> None:
    """Points as (days before now, line without its time)."""
    lines = [f"{line} {int((NOW - timedelta(days=days)).timestamp()) * 10**9}" for days, line in points]
    Influx(url, bucket.split("/", maxsplit=1)[0]).write(bucket, "\n".join(lines) + "\n")


def values(url: str, database: str, statement: str) -> list[Any]:
    return [row["v"] for row in influxql(url, "", statement, database)]


@pytest.fixture
def url(influx: LocalInflux) -> str:
    running = influx.running_url()
    assert running is not None
    return running


@pytest.fixture
def own(tmp_path: Path) -> Iterator[LocalInflux]:
    """A server of the test's own, not started yet."""
    made = LocalInflux(Layout().influxd, tmp_path / "influxdb")
    yield made
    made.stop()


def test_the_benchs_own_server_is_set_up_as_the_roles_and_a_second_time_changes_nothing(url: str) -> None:
    assert policies(url, "bench") == POLICIES
    assert sorted(queries(url, "bench")) == QUERIES
    assert create_database(url, "bench") == []
    assert create_database(url, "new one") == [
        "database new one is missing",
        "retention policy bench_1m is missing",
        "retention policy history is missing",
        *QUERIES_MISSING,
    ]
    assert create_database(url, "new one") == []
    assert policies(url, "new one") == POLICIES


def test_values_of_a_minute_are_there_although_the_server_ends_with_the_night(own: LocalInflux) -> None:
    """A run of 25 minutes begins with the server and ends with it: the half hour at which the server makes them never comes."""
    (port,), minute_s = free_ports(1), int(time.time()) // 60 * 60 - 120
    started = own.start(port)
    for later_s, value in ((0, 1), (59, 3), (60, 7)):
        Influx(started).write("bench", f"smart,host=h,run=r v={value} {minute_s + later_s}000000000")
    assert own.finish()
    assert not own.finish()
    found = Server(own.start(port), "bench").rows('SELECT mean_v, max_v, last_v FROM "bench_1m"."smart"')
    assert [row[1:] for row in found] == [[2, 3, 3], [7, 7, 7]]


def test_the_role_and_the_bench_say_the_same() -> None:
    """The role's defaults stand in YAML, as every role's; the rest of the description is one file."""
    defaults = YAML(typ="safe").load(ROLE / "defaults" / "main.yml")
    ours = Storage()
    named = {name: f"influxdb_{'raw_' if name == 'retention' else ''}{name}" for name in OPTIONS if name != "history"}
    assert {name: defaults[variable] for name, variable in named.items()} == {
        name: getattr(ours, name) for name in named
    }
    assert YAML(typ="safe").load(ROLE / "vars" / "main.yml")["__influxdb_history"] == ours.history


def test_every_measurement_of_the_agents_has_values_of_a_minute() -> None:
    """The list stands in the description, since a server that the role sets up has no metrics.yml."""
    assert set(MEASUREMENTS) == declared().keys() - set(IN_HISTORY)
    assert list(MEASUREMENTS) == sorted(MEASUREMENTS)


def test_the_index_is_on_disk_and_no_number_of_series_ends_writes(own: LocalInflux) -> None:
    started = own.start(free_ports(1)[0])
    template = (
        (ROLE / "templates" / "influxdb.conf.j2").read_text(encoding="utf-8").replace("{{ ansible_managed }}", "")
    )
    ours = tomllib.loads((own.directory / "influxdb.conf").read_text(encoding="utf-8"))["data"]
    roles = tomllib.loads(re.sub(r"\{\{ (influxdb_data_dir) \}\}/", "", template).replace("{{", "").replace("}}", ""))[
        "data"
    ]
    assert ours == roles
    assert (ours["index-version"], ours["max-series-per-database"], ours["max-values-per-tag"]) == ("tsi1", 0, 0)
    write(started, "bench", (0, "smart,host=h v=1"))
    assert list((own.directory / "data" / "bench" / "raw").glob("*/index"))


def test_a_folder_from_before_loses_no_point(url: str) -> None:
    """The database had one policy, autogen, and the history; its points are where every query looks still."""
    database = "before"
    influxql(url, "", f'CREATE DATABASE "{database}"')
    influxql(url, "", f'CREATE RETENTION POLICY "history" ON "{database}" DURATION INF REPLICATION 1')
    write(url, database, *((days, f"smart,host=h,run=r{days} v={days}") for days in (400, 40, 0)))
    write(url, f"{database}/history", (400, "bench_run,host=h v=1"))
    assert create_database(url, database) == [
        "retention policy autogen has shards of 168h0m0s, not 1d",
        "retention policy bench_1m is missing",
        *QUERIES_MISSING,
    ]
    assert policies(url, database) == {"autogen": ("0s", True), "bench_1m": ("0s", False), "history": ("0s", False)}
    assert f"FROM {database}.autogen.smart " in queries(url, database)["bench_1m_smart"]
    assert values(url, database, "SELECT v FROM smart") == [400, 40, 0]
    assert values(url, database, 'SELECT v FROM "history".bench_run') == [1]
    assert create_database(url, database) == []


def test_what_somebody_altered_by_hand_is_named_and_put_right(url: str) -> None:
    database = "altered"
    create_database(url, database)
    write(url, database, (40, "smart,host=h v=40"), (0, "smart,host=h v=0"))
    for statement in (
        f'ALTER RETENTION POLICY "history" ON {database} DEFAULT',
        f'ALTER RETENTION POLICY "bench_1m" ON {database} DURATION 52w',
        f'DROP CONTINUOUS QUERY "bench_1m_smart" ON {database}',
        f'CREATE CONTINUOUS QUERY "bench_1m_smart" ON {database} BEGIN SELECT mean(*) INTO {database}."bench_1m".smart '
        f"FROM {database}.raw.smart GROUP BY time(1m), * END",
        # As the role made it before: one for all, by run.
        f'CREATE CONTINUOUS QUERY "bench_1m" ON {database} BEGIN SELECT mean(*) INTO {database}."bench_1m".:MEASUREMENT '
        f"FROM {database}.raw./.*/ GROUP BY time(1m), * END",
        f'CREATE CONTINUOUS QUERY "mine" ON {database} BEGIN SELECT mean(*) INTO {database}."bench_1m".mine '
        f"FROM {database}.raw.mine GROUP BY time(1m), * END",
    ):
        influxql(url, "", statement)
    assert create_database(url, database) == [
        "retention policy raw is 0s, not INF default",
        "retention policy bench_1m is 8736h0m0s, not INF",
        "continuous query bench_1m is not wanted",
        "continuous query bench_1m_smart differs",
    ]
    assert sorted(queries(url, database)) == [*QUERIES, "mine"]
    assert policies(url, database) == POLICIES
    assert values(url, database, "SELECT v FROM smart") == [40, 0]
    influxql(url, "", f'DROP CONTINUOUS QUERY "bench_1m_cpu" ON {database}')
    assert create_database(url, database) == ["continuous query bench_1m_cpu is missing"]
    influxql(url, "", f'DROP RETENTION POLICY "history" ON {database}')
    assert create_database(url, database) == ["retention policy history is missing"]


def test_a_server_killed_between_two_steps_goes_on_where_it_was(own: LocalInflux) -> None:
    """After a statement of the set-up: SIGKILL, a start, which sets up the rest."""
    port = free_ports(1)[0]
    started = own.start(port)
    wanted = Storage(database="broken", retention="INF")
    every = [
        statement for _, statements in differences(partial(influxql, started, ""), wanted) for statement in statements
    ]
    assert len(every) == 3 + len(QUERIES)
    for number in (0, 1, 2, 3, 4, len(every) - 1):
        influxql(started, "", 'DROP DATABASE "broken"')
        for statement in every[:number]:
            influxql(started, "", statement)
        pid = own.running_pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        started = own.start(port)
        assert len(create_database(started, "broken")) == len(every) - number
        assert policies(started, "broken") == POLICIES
        assert sorted(queries(started, "broken")) == QUERIES


def test_a_server_that_refuses_is_quoted(url: str) -> None:
    with pytest.raises(BenchError, match=f"InfluxDB at {url} did not set up the database 'a\\\\nb': "):
        create_database(url, "a\nb")


# --- room ---


def run_of(runs: Path, days: float, sealed: bool) -> None:
    folder = runs / f"{NOW - timedelta(days=days):%Y%m%dT%H%M%S}Z-here"
    folder.mkdir(parents=True)
    if sealed:
        (folder / MANIFEST).touch()


@pytest.fixture
def aged(url: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with points of four ages in each policy."""
    database = f"aged {request.node.name}"
    create_database(url, database)
    for bucket in (database, f"{database}/bench_1m", f"{database}/history"):
        write(url, bucket, *((days, f"smart,host=h v={days}") for days in (100, 60, 20, 0)))
    yield database
    influxql(url, "", f'DROP DATABASE "{database}"')


RAW = "SELECT v FROM smart"


@pytest.mark.parametrize(
    ("unsealed", "left"),
    [
        ((), [20, 0]),
        ((10,), [20, 0]),  # younger than what is kept
        ((70,), [60, 20, 0]),
        ((59.9,), [60, 20, 0]),  # its candidate's clock may be behind
        ((200, 10), [100, 60, 20, 0]),
    ],
)
def test_old_raw_points_go_when_asked_and_never_those_of_an_unsealed_run(
    url: str, aged: str, tmp_path: Path, unsealed: tuple[float, ...], left: list[int]
) -> None:
    run_of(tmp_path, 300, sealed=True)
    for days in unsealed:
        run_of(tmp_path, days, sealed=False)
    (tmp_path / "latest").symlink_to(tmp_path)
    (tmp_path / "20261399T250000Z-x").mkdir()  # a date that does not exist
    room = Room(url, Path("/none"), tmp_path, aged)
    assert room.delete_old(None, NOW) == 0
    assert values(url, aged, RAW) == [100, 60, 20, 0], "nobody asked"
    assert room.delete_old(timedelta(days=30), NOW) == 4 - len(left)
    assert values(url, aged, RAW) == left
    for policy in ("bench_1m", "history"):
        assert values(url, aged, f'SELECT v FROM "{policy}".smart') == [100, 60, 20, 0]
    assert room.delete_old(timedelta(days=30), NOW) == 0


def ended(shard: dict[str, Any]) -> bool:
    return datetime.fromisoformat(shard["end_time"]) <= NOW - timedelta(days=14)


def taken_by(shards: list[Path]) -> int:
    """B that shards take on disk, found without the bench: by du, without the shards' folders themselves, which it counts as well."""
    du = subprocess.run(
        ["du", "--block-size=1", "--summarize", "--", *shards], capture_output=True, text=True, check=True
    )
    return (
        sum(int(line.split()[0]) for line in du.stdout.splitlines()) - sum(one.stat().st_blocks for one in shards) * 512
    )


NOTHING = Tidied(0, 0, 0, "")
UNASKED = Bounds.of({})
KEPT = re.compile(
    r"the bench's own InfluxDB keeps raw points since (\d{4}-\d\d-\d\d): (\d.*B) on disk are older than 14d, after which a new server "
    rf"deletes them; {RETENTION}=14d or {RAW_MAX}=200GB, for example, bounds them here, too"
)


def test_a_new_database_keeps_raw_points_for_14_days(url: str, tmp_path: Path) -> None:
    """Also those of an old run that is delivered once more: they are there until the next start."""
    create_database(url, "fresh")
    room = Room(url, tmp_path, tmp_path / "runs", "fresh")
    assert room.tidy(UNASKED, NOW) == NOTHING
    write(url, "fresh", *((days, f"smart,host=h v={days}") for days in (40, 20, 13, 0)))
    assert room.tidy(UNASKED, NOW) == Tidied(2, 0, 0, "")
    assert values(url, "fresh", RAW) == [13, 0]


def test_older_points_that_a_start_finds_stay_and_it_says_so_once(
    url: str, influx: LocalInflux, tmp_path: Path
) -> None:
    """A database of before: weeks in a shard, and days."""
    database = "promised"
    influxql(url, "", f'CREATE DATABASE "{database}" WITH DURATION INF REPLICATION 1 NAME "raw"')
    write(url, database, *((days, f"smart,host=h v={days}") for days in (100, 60)))
    assert create_database(url, database)[0] == "retention policy raw has shards of 168h0m0s, not 1d"
    write(url, database, *((days, f"smart,host=h v={days}") for days in (40, 20, 13, 0)))
    room = Room(url, influx.directory, tmp_path, database)
    done = room.tidy(UNASKED, NOW)
    said = KEPT.fullmatch(done.kept)
    assert said and (done.old, done.large) == (0, 0)
    old = [row["id"] for row in influxql(url, "", "SHOW SHARDS") if row["database"] == database and ended(row)]
    folders = [influx.directory / part / database / "raw" / str(one) for part in ("data", "wal") for one in old]
    assert len(old) == 4 and said[2] == decimal_label(taken_by([one for one in folders if one.exists()]))
    # A shard of a week begins with a Monday of UTC.
    assert NOW - timedelta(days=108) < datetime.fromisoformat(f"{said[1]}T00:00:00+00:00") <= NOW - timedelta(days=100)
    assert values(url, database, RAW) == [100, 60, 40, 20, 13, 0]
    for _ in range(2):
        assert room.tidy(UNASKED, NOW) == NOTHING, "said once"
    assert values(url, database, RAW) == [100, 60, 40, 20, 13, 0]
    # Whoever chooses gets it; a later start without the choice shortens nothing of what was chosen to stay.
    assert room.tidy(Bounds.of({RETENTION: "50d"}), NOW) == Tidied(2, 0, 0, "")
    assert KEPT.fullmatch(room.tidy(UNASKED, NOW).kept)
    assert values(url, database, RAW) == [40, 20, 13, 0]
    assert room.tidy(Bounds.of({RETENTION: "14d"}), NOW).old == 2
    # Nothing older is held: from now on it is as a new one.
    assert room.tidy(UNASKED, NOW) == NOTHING
    write(url, database, (30, "smart,host=h v=30"))
    assert room.tidy(UNASKED, NOW).old == 1
    assert values(url, database, RAW) == [13, 0]


@pytest.mark.parametrize("chosen", [{RETENTION: "INF"}, {RETENTION: "52w"}, {RAW_MAX: "200GB"}])
def test_what_was_chosen_to_stay_is_not_deleted_by_a_start_without_the_choice(
    url: str, tmp_path: Path, chosen: dict[str, str]
) -> None:
    """A timer's environment differs from a shell's."""
    database = f"chosen {chosen}"
    create_database(url, database)
    room = Room(url, tmp_path, tmp_path / "runs", database)
    assert room.tidy(UNASKED, NOW) == NOTHING
    assert room.tidy(Bounds.of(chosen), NOW) == NOTHING
    write(url, database, *((days, f"smart,host=h v={days}") for days in (90, 0)))
    assert room.tidy(Bounds.of(chosen), NOW) == NOTHING
    assert KEPT.fullmatch(room.tidy(UNASKED, NOW).kept)
    assert values(url, database, RAW) == [90, 0]


@pytest.mark.parametrize("text", ["", "14", "soon", "\xff"])
def test_a_spoilt_note_of_what_was_agreed_deletes_nothing(url: str, tmp_path: Path, text: str) -> None:
    database = f"spoilt {text!r}"
    create_database(url, database)
    write(url, database, *((days, f"smart,host=h v={days}") for days in (40, 0)))
    (tmp_path / f"{database}.raw-retention").write_text(text, encoding="latin-1")
    room = Room(url, tmp_path, tmp_path / "runs", database)
    assert KEPT.fullmatch(room.tidy(UNASKED, NOW).kept)
    assert values(url, database, RAW) == [40, 0]
    assert (tmp_path / f"{database}.raw-retention").read_text(encoding="ascii") == FOR_EVER


@pytest.mark.parametrize(("retention", "hours"), [("INF", 24), ("52w", 24), ("2d", 24), ("47h", 1), ("1h", 1)])
def test_a_shard_of_raw_points_holds_a_day_however_long_they_are_kept(url: str, retention: str, hours: int) -> None:
    """InfluxDB refuses shards that hold more than is kept, and takes a week where nobody says otherwise."""
    database = f"shards {retention}"
    ask = partial(influxql, url, "")
    wanted = Storage(database=database, retention=retention)
    for _, statements in differences(ask, wanted):
        for statement in statements:
            ask(statement)
    spans = {row["name"]: row["shardGroupDuration"] for row in ask(f'SHOW RETENTION POLICIES ON "{database}"')}
    assert spans["raw"] == f"{hours}h0m0s"
    assert differences(ask, wanted) == []
    ask(f'DROP DATABASE "{database}"')


@pytest.mark.parametrize(
    ("unsealed", "too_much", "left", "within"),
    [
        ((), None, [100, 60, 20, 0], True),  # nobody asked
        ((), -1, [100, 60, 20, 0], True),  # there is room for one more byte
        ((), 0, [100, 60, 20, 0], True),
        ((), 1, [60, 20, 0], True),  # one byte too much takes the oldest shard
        ((), 10**15, [0], False),  # that of now stays, whatever the limit
        ((70,), 10**15, [60, 20, 0], False),
        ((20.5, 200), 10**15, [100, 60, 20, 0], False),
    ],
    # The database is named by it, and 1.8 takes a folder's name for a pattern of its own.
    ids=("unasked", "room", "full", "byte", "any", "unsealed", "old-unsealed"),
)
def test_the_oldest_raw_points_go_when_all_take_too_much_of_the_disk(
    influx: LocalInflux,
    url: str,
    aged: str,
    tmp_path: Path,
    unsealed: tuple[float, ...],
    too_much: int | None,
    left: list[int],
    within: bool,
) -> None:
    run_of(tmp_path, 300, sealed=True)
    for days in unsealed:
        run_of(tmp_path, days, sealed=False)
    folders = [influx.directory / part / aged / "raw" for part in ("data", "wal")]
    shards = [folder / shard.name for folder in folders for shard in folder.iterdir() if shard.name.isdigit()]
    taken = taken_by(shards)
    assert taken > 0
    bytes_max = None if too_much is None else max(1, taken - too_much)
    room = Room(url, influx.directory, tmp_path, aged)
    deleted, beyond = room.delete_beyond(bytes_max, NOW)
    assert (deleted, values(url, aged, RAW)) == (4 - len(left), left)
    assert (beyond == 0) is within
    for policy in ("bench_1m", "history"):
        assert values(url, aged, f'SELECT v FROM "{policy}".smart') == [100, 60, 20, 0]
    assert room.delete_beyond(bytes_max, NOW)[0] == 0


def test_the_limit_is_a_size_and_none_by_default() -> None:
    bytes_max = [Bounds.of(one).bytes_max for one in ({}, {RAW_MAX: ""}, {RAW_MAX: "200GB"})]
    assert bytes_max == [None, None, 200 * 10**9]
    for text, fault in (
        ("0", "0 would delete all raw points"),
        ("0 GB", "0 would delete all raw points"),
        ("-1GB", "'-1GB' is not a size"),
        ("nan", "'nan' is not a size"),
        ("200G", "'200G' has unit 'G'"),
        ("30d", "'30d' has unit 'd'"),
        ("inf", "'inf' is not a size"),
    ):
        with pytest.raises(RefusedError, match=f"^{RAW_MAX}: {fault}"):
            Bounds.of({RAW_MAX: text})


def test_the_setting_is_a_duration_and_by_default_the_roles() -> None:
    defaults = YAML(typ="safe").load(ROLE / "defaults" / "main.yml")
    assert defaults["influxdb_raw_retention"] == "14d"
    for unset in ({}, {RETENTION: ""}, {RETENTION: "", RAW_MAX: ""}):
        assert Bounds.of(unset) == Bounds(timedelta(days=14), None, chosen=False)
    # A size alone is filled; both are minded.
    assert Bounds.of({RAW_MAX: "200GB"}) == Bounds(None, 200 * 10**9, chosen=True)
    assert Bounds.of({RAW_MAX: "200GB", RETENTION: "30d"}) == Bounds(timedelta(days=30), 200 * 10**9, chosen=True)
    assert Bounds.of({RETENTION: "INF"}) == Bounds(None, None, chosen=True)
    assert Bounds.of({RETENTION: "3w"}).kept == timedelta(days=21)
    with pytest.raises(RefusedError, match=f"{RETENTION}: '30 days' is not a duration: write a whole number"):
        Bounds.of({RETENTION: "30 days"})


def test_a_server_that_takes_the_greater_part_of_its_room_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = Layout(tmp_path)
    assert not [one for one in control_node(layout) if "InfluxDB" in one.subject and "data" in one.subject]
    layout.influx_data.mkdir(parents=True)
    (layout.influx_data / "shard").write_bytes(os.urandom(2**20))
    usage = type("Usage", (), {"free": 2**21, "total": 2**22, "used": 2**21})
    monkeypatch.setattr(influx_room.shutil, "disk_usage", lambda _: usage)
    found, remedy = fullness(layout.influx_data)
    assert (remedy, found.split(" of ")[0][:2]) == ("", "1.")
    usage.free = 2**19
    (finding,) = [one for one in control_node(layout) if "InfluxDB" in one.subject and "data" in one.subject]
    assert not finding.ok
    assert f"set {RETENTION}" in finding.remedy


def test_a_run_deletes_what_is_no_longer_wanted_and_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As each run does when it begins; its own bundle is not sealed yet."""
    layout = Layout(tmp_path)
    layout.influxd.parent.mkdir(parents=True)
    layout.influxd.symlink_to(Layout().influxd)
    own = LocalInflux(layout.influxd, layout.influx_data)
    started = own.start(free_ports(1)[0])
    try:
        write(started, "bench", *((days, f"smart,host=h v={days}") for days in (60, 20, 10, 0)))
        bundle = Bundle.create(tmp_path / "runs", "here", "", "short")
        monkeypatch.delenv(RETENTION, raising=False)
        monkeypatch.delenv(RAW_MAX, raising=False)
        usage = type("Usage", (), {"free": 1})
        monkeypatch.setattr(influx_room.shutil, "disk_usage", lambda _: usage)
        said: list[str] = []
        watch = Watch(SimpleNamespace(layout=layout), bundle, None, None, said.append)  # type: ignore[arg-type]
        assert watch.reach_influx().url == started
        assert values(started, "bench", RAW) == [60, 20, 10, 0], "nobody asked"
        note, warning = said
        assert KEPT.fullmatch(note.removeprefix("note: "))
        assert warning.startswith("warning: the bench's own InfluxDB takes ")
        assert f"set {RETENTION} (7d, for example) or {RAW_MAX} (200GB, for example)" in warning
        monkeypatch.setenv(RAW_MAX, "1B")
        said.clear()
        Watch(SimpleNamespace(layout=layout), bundle, None, None, said.append).reach_influx()  # type: ignore[arg-type]
        assert values(started, "bench", RAW) == [0], "the shard of now, and of this run"
        assert said[0].startswith("warning: raw points in the bench's own InfluxDB take ")
        assert f"more than {RAW_MAX} allows" in said[0]
    finally:
        own.stop()


# --- the number of series ---

DAY_MS = 86_400_000
RAW_NIGHTS = 15  # 14 d and the day that has not ended yet: shards of a day
BOUND = 100_000  # series of six servers of 24 drives after 365 nights
ADR = Layout().repository / "docs" / "adr" / "0041-what-influxdb-keeps.md"


def cardinality(url: str, database: str) -> int:
    (row,) = influxql(url, "", "SHOW SERIES CARDINALITY", database)
    return int(row["cardinality estimation"])


def test_the_series_of_a_year_are_those_that_the_decision_states(url: str) -> None:
    """Counted by InfluxDB: raw points make new series each night, and these go with the shards that alone held them; values of a minute and
    most of the history make none. From that, the number of six servers of 24 drives after 365 nights."""
    database = "series"
    create_database(url, database)
    begin_ns = (int(NOW.timestamp()) * 10**9 // NIGHT_NS - 25) * NIGHT_NS
    counts = []
    for servers, nights in ((1, 1), (1, 2), (2, 2)):
        write_nights(url, database, servers, begin_ns, nights)
        counts.append(cardinality(url, database))
    of_a_night = counts[1] - counts[0]
    once = counts[0] - of_a_night  # of a server
    assert counts[2] == 2 * once + 4 * of_a_night
    since_ms = begin_ns // 10**6
    for night_ms in (since_ms, since_ms + DAY_MS):
        by_the_minute(Server(url, database), night_ms, until_ms=night_ms + 60_000)
    minutes, rest = divmod(cardinality(url, database) - counts[2], 2)
    assert rest == 0
    own = Bounds.of({}).kept
    room = Room(url, Path("/none"), Path("/none"), database)
    assert own == timedelta(days=RAW_NIGHTS - 1) and f"{own.days}d" == Storage().retention
    assert room.delete_old(own, NOW) == 2
    kept, rest = divmod(cardinality(url, database) - 2 * minutes - 2 * once, 4)
    assert rest == 0, "the series of raw points are gone"
    raw = of_a_night - kept
    # The bench's own server, nobody having set anything: as many nights are alive as the decision reckons with.
    before = cardinality(url, database)
    write_nights(url, database, 1, begin_ns + 4 * NIGHT_NS, 22)
    room.delete_old(own, NOW)
    assert cardinality(url, database) - before <= RAW_NIGHTS * raw + 22 * kept
    assert cardinality(url, database) - before >= (RAW_NIGHTS - 1) * raw + 22 * kept
    of_all = [6 * RAW_NIGHTS * raw, 6 * minutes, 6 * once, 6 * 365 * kept]
    assert sum(of_all) < BOUND
    text = ADR.read_text(encoding="utf-8")
    for number in (raw, minutes, once, kept, *of_all, sum(of_all)):
        assert f"| {number:,} |" in text, (
            f"{ADR.name}: {number:,} (raw {raw}, minutes {minutes}, history {once} and {kept} a night, in all {sum(of_all):,})"
        )
