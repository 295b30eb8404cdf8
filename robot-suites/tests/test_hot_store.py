"""The hot store: what is refused beforehand, and the real thing on real engines: semantics, kills, lost nodes, and that nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from small_runs import altered, refusal

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.workloads.hot_store.figures import ENGINES
from daq_bench.bench_model.workloads.hot_store.runs import loss_of, raw_of, scale_point_of
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.workloads.hot_store import plans
from daq_bench.rig.workloads.hot_store import workload as hot_store

LAYOUT = Layout()
needs_hotstore = pytest.mark.skipif(not LAYOUT.hotstore.exists(), reason="hotstore is not built")


scenario = partial(altered, "hot-store-rehearsal")
refused = partial(refusal, hot_store.check)


@pytest.fixture
def site(tmp_path: Path) -> HotSite:
    raw, scratch = tmp_path / "raw", tmp_path / "scratch"
    raw.mkdir()
    scratch.mkdir()
    tools = plans.Tools(LAYOUT.hotstore, raw, Path("/dev/shm") / f"hot-store-test-{uuid.uuid4().hex[:12]}")
    return hot_store.HotSite(LocalMachine(), tools, scratch, raw, raw)


HotSite = hot_store.HotSite


@pytest.fixture
def campaign(site: HotSite) -> Iterator[hot_store.Campaign]:
    asked = scenario(kills={"seconds": 1, "events": 60, "acknowledged_min": 20}).workloads["hot_store"]
    yield hot_store.Campaign(site, asked, 2, 1, lambda *_: None)
    assert not site.tools.memory.exists(), "a folder was left in memory"


def test_what_cannot_be_measured_is_refused_with_the_remedy() -> None:
    assert "2 nodes are no Redis Cluster" in refused(scenario(scale_out={**scale(), "nodes": [1, 2]}))
    assert "capacity_size: 1048576 B are too little" in refused(scenario(capacity_size=1 << 20))


def scale() -> dict[str, Any]:
    found: dict[str, Any] = scenario().workloads["hot_store"]["scale_out"]
    return found


def test_room_is_asked_for_on_the_target_and_in_memory() -> None:
    assert (
        hot_store.WORKLOAD.need(scenario()).size_bytes == hot_store.WORKLOAD.memory(scenario()).size_bytes == 256 << 20
    )
    assert hot_store.WORKLOAD.need(scenario(target_too=False)).size_bytes == 0


def test_in_the_base_deployment_a_producer_runs_where_its_events_are_kept() -> None:
    tools = plans.Tools(Path("hotstore"), Path("out"), Path("mem"))
    base, _, _ = plans.scale_out(tools, "x", "base", 3, scale(), 3)
    detached, _, _ = plans.scale_out(tools, "x", "detached", 3, scale(), 3)
    places = [[one["at"] for one in made["steps"][0]["processes"]] for made in (base, detached)]
    assert places[0] == ["node0", "client0", "node1", "client1", "node2", "client2"]
    assert places[1] == ["client3", "client0", "client4", "client1", "client5", "client2"]
    argv = base["steps"][0]["processes"][2]["argv"]
    assert {"--location=modulo", "--first-event=1", "--stride=3"} <= set(argv)


def test_each_value_size_is_measured_again_on_a_fresh_store(
    campaign: hot_store.Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(campaign, "_embedded_run", lambda name, size, folder: done.append(f"{name} in {folder}"))
    monkeypatch.setattr(campaign, "_redis_run", lambda name, size, seconds: done.append(name))
    monkeypatch.setattr(campaign, "_remove_target_store", lambda: done.append("removed"))
    points = [campaign._point(repetition, size) for repetition, size in campaign.turns]
    assert [(one["repetition"], one["value_bytes"]) for one in points] == [
        (1, 1000),
        (1, 10_000),
        (2, 1000),
        (2, 10_000),
    ]
    own = [name for name in done if name.endswith("{folder}/store")]  # the plan makes its folder anew and removes it
    assert len(set(own)) == 4 and done.count("removed") == 4
    first = [name.partition(" ")[0] for name in done[::4]]
    assert first == [
        "hot-store-1000-repetition-1", "hot-store-redis-10000-repetition-1",
        "hot-store-redis-1000-repetition-2", "hot-store-10000-repetition-2",
    ]  # fmt: skip


def test_the_whole_scenario_takes_as_long_as_its_repetitions() -> None:
    whole = altered("hot-store")
    assert whole.repetitions == 6
    longer, once = (hot_store.WORKLOAD.seconds(one) or 0.0 for one in (whole, replace(whole, repetitions=1)))
    assert longer - once == pytest.approx(5 * 6 * 3 * 32)


@needs_hotstore
@pytest.mark.parametrize("engine", ENGINES)
def test_every_row_of_the_semantics_passes_on_the_real_engine(campaign: hot_store.Campaign, engine: str) -> None:
    rows = raw_of(campaign.site.raw)(campaign._semantics(engine))["rows"]
    assert len(rows) == 14
    assert [row for row in rows if row["outcome"] != "passed"] == []


@pytest.mark.parametrize(
    ("returned", "missing", "attempt"), [([2, 0], 0, 1), ([0, 0, 0, 3], 0, 2), ([0] * 6, 0, 3), ([0, 0], 1, 1)]
)
def test_a_killed_consumer_that_held_nothing_is_killed_again(
    campaign: hot_store.Campaign, monkeypatch: pytest.MonkeyPatch, returned: list[int], missing: int, attempt: int
) -> None:
    """On a busy machine the others may have done all before. One that never held anything stays without a proof, and what was lost stays
    lost."""
    counts = {
        "missing": missing,
        "acknowledged": 60,
        **dict.fromkeys(("removed", "corrupt", "came_back", "removed_twice"), 0),
    }
    monkeypatch.setattr(hot_store, "raw_of", lambda _: lambda _: counts)
    left = iter(returned)
    monkeypatch.setattr(hot_store.HotSite, "carry_out", lambda self, plan: [])
    monkeypatch.setattr(
        hot_store.HotSite,
        "kept",
        lambda self, name, kind: SimpleNamespace(returned_events=next(left)) if "-consumer-" in name else None,
    )
    row = campaign._kills("redis")[0]
    name = "hot-store-consumers-redis" + (f"-attempt-{attempt}" if attempt > 1 else "")
    assert (row["verify"], row["heirs"]) == (f"{name}-verify", [f"{name}-consumer-1", f"{name}-consumer-2"])
    assert list(left) == []


@needs_hotstore
@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_acknowledged_is_lost_whatever_is_killed(campaign: hot_store.Campaign, engine: str) -> None:
    rows = [loss_of(one, raw_of(campaign.site.raw)) for one in campaign._kills(engine)]
    assert [row["id"] for row in rows][1] == ("node-lost" if engine == "redis-cluster" else "restart-after-kill")
    assert [row for row in rows if row["outcome"] != "passed"] == []


@needs_hotstore
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_in_the_base_deployment_puts_stay_off_the_network(campaign: hot_store.Campaign) -> None:
    campaign.parameters = {**campaign.parameters, "scale_out": {**scale(), "seconds": 2}}
    raw = raw_of(campaign.site.raw)
    base, detached = (scale_point_of(campaign._scale(kind, 1), raw) for kind in ("base", "detached"))
    assert base["admissible"] and detached["admissible"], (base["reason"], detached["reason"])
    # A value of 10000 B crosses once, or twice.
    assert 10_000 < base["network_bytes_per_event"] < 15_000 < 20_000 < detached["network_bytes_per_event"] < 26_000


@needs_hotstore
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_however_the_program_ends_its_servers_end_and_the_next_one_cleans_up(
    tmp_path: Path, number: signal.Signals
) -> None:
    folder = Path("/dev/shm") / f"hot-store-test-{uuid.uuid4().hex[:12]}"
    sleeping = {"name": "sleep", "argv": ["sleep", "600"], "at": "client0"}
    step = {"do": "run", "processes": [sleeping], "timeout_s": 600}
    plan = {"folder": str(folder), "network": "namespaces", "masters": 1, "clients": 1, "steps": [step]}
    program = subprocess.Popen(LocalMachine().program("hot_store_nodes", json.dumps(plan)), stdout=subprocess.PIPE)
    prefix = f"hs{program.pid}"
    try:
        for _ in range(200):
            if children(program.pid, "sleep"):
                break
            time.sleep(0.1)
        servers = children(program.pid, "redis-server")
        assert servers
    finally:
        program.send_signal(number)
    program.wait(120)
    for _ in range(50):
        if not any(Path(f"/proc/{pid}").exists() for pid in servers):
            break
        time.sleep(0.1)
    assert not any(Path(f"/proc/{pid}").exists() for pid in servers)
    if number == signal.SIGKILL:
        after = {**plan, "folder": str(tmp_path / "next"), "masters": 0, "clients": 0, "steps": []}
        subprocess.run(LocalMachine().program("hot_store_nodes", json.dumps(after)), check=True, capture_output=True)
        subprocess.run(["rm", "-r", folder], check=True)  # memory of a program that was killed outright
    assert prefix not in subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    assert prefix not in subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    assert not folder.exists()


def children(pid: int, name: str) -> list[int]:
    """Descendants of `pid` that run `name`."""
    found, queue = [], [pid]
    while queue:
        parent = queue.pop()
        said = subprocess.run(
            ["pgrep", "--parent", str(parent)], capture_output=True, text=True, check=False
        ).stdout.split()
        queue += [int(each) for each in said]
        for each in said:
            try:
                words = Path(f"/proc/{each}/cmdline").read_bytes().replace(b"\0", b" ").split()
            except OSError:
                continue
            if words and Path(words[0].decode()).name == name:
                found.append(int(each))
    return found


def test_a_namespace_that_is_not_there_is_named(site: HotSite) -> None:
    step = plans.run([plans.process("x", ["true"])], 1)
    with pytest.raises(BenchError, match=r"nosuchprogram"):
        site.carry_out(plans.plan(site.tools, [{**step, "processes": [plans.process("x", ["/nosuchprogram"])]}]))
    assert not site.tools.memory.exists()


def load_with_a_slow_start(script: str, timeout_s: float = 30.0) -> plans.Step:
    """Returns a load that is killed 0.2 s after it has begun, and begins when `{folder}/begun` is there."""
    load = plans.process("load", ["sh", "-c", script], kill_after_s=0.2)
    return {**plans.run([load], 0, kill_from="{folder}/begun"), "timeout_s": timeout_s}


def test_a_load_is_killed_so_long_after_it_has_begun_however_long_its_start_takes(site: HotSite) -> None:
    script = "sleep 1; touch {folder}/begun; sleep 60"
    done = site.carry_out(plans.plan(site.tools, [load_with_a_slow_start(script)]))[0]
    assert done["processes"][0]["returncode"] == -signal.SIGKILL
    assert 1.2 <= done["seconds"] < 30


@pytest.mark.parametrize(
    ("script", "timeout_s", "words"),
    [
        ("echo no room >&2; exit 2", 30.0, r"hotstore \(load\) ended with exit status 2: no room"),
        ("sleep 60", 1.0, r"load that is to be killed did not begin within 1 s: no .*/begun"),
    ],
)
def test_a_load_that_never_begins_is_told_with_its_cause(
    site: HotSite, script: str, timeout_s: float, words: str
) -> None:
    with pytest.raises(BenchError, match=words):
        site.carry_out(plans.plan(site.tools, [load_with_a_slow_start(script, timeout_s)]))
    assert not site.tools.memory.exists()


@needs_hotstore
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--value-size=1k"], "'k' is not a unit that means one thing only"),
        ([], "--dir: --engine lmdb needs the store's directory"),
        (["--engine=redis"], "--endpoint: Redis needs one"),
        (["--engine=redis", "--endpoint=nowhere"], "--endpoint 'nowhere': write HOST:PORT"),
        (["--engine=redis", "--endpoint=127.0.0.1:1"], "no server answers there"),
        (["--dir=/nosuch/place"], "--dir /nosuch/place"),
        (["--dir={tmp}", "--capacity=1"], "--capacity 1: give 1MiB to 64TiB"),
        (["--dir={tmp}", "--key=event:65"], "--key 'event:65': write NAME:BITS"),
        (["--dir={tmp}", "--producers=0", "--consumers=0"], "one of either at least"),
        (["--dir={tmp}", "--endpoint=a:1"], "belong to --engine redis"),
    ],
)
def test_bad_usage_is_one_clear_error(tmp_path: Path, options: list[str], words: str) -> None:
    argv = [LAYOUT.hotstore, "bench", *(one.replace("{tmp}", str(tmp_path / "store")) for one in options)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert words in done.stderr and len(done.stderr.strip().splitlines()) == 1


def acknowledgements(first: int, *records: tuple[bytes, int]) -> bytes:
    """Records of a log, as the store writes them; `first`: the number of the first one in its file."""
    made = b""
    for number, (kind, event) in enumerate(records, start=first):
        content = kind + event.to_bytes(8, "little")
        made += content + zlib.crc32(number.to_bytes(8, "little") + content).to_bytes(4, "little")
    return made


@needs_hotstore
def test_verify_finds_what_was_lost_damaged_and_came_back(tmp_path: Path) -> None:
    """The judge is judged: each kind of damage is made on a real store, and found."""
    store, log = tmp_path / "store", tmp_path / "acks"

    def hotstore(command: str, *options: str) -> subprocess.CompletedProcess[str]:
        common = [f"--dir={store}", "--capacity=16MiB", "--value-size=100"]
        argv = [LAYOUT.hotstore, command, *common, *options]
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)

    feed = ["--consumers=0", "--warm-up=0", "--events=100", "--seconds=20"]
    assert hotstore("bench", *feed, f"--ack-log={log}").returncode == 0
    assert hotstore("verify", f"--ack-log={log}").returncode == 0
    logged = next(log.glob("put-*.acks"))
    records = logged.read_bytes()
    # An event that was acknowledged and is not there; one that was removed and is.
    logged.write_bytes(records + acknowledgements(100, (b"p", 100_000), (b"b", 0), (b"e", 0)))
    done = hotstore("verify", f"--ack-log={log}", "--json=-")
    assert done.returncode == 3
    found = json.loads(done.stdout)
    assert (found["missing"], found["came_back"], found["present"]) == (1, 1, 99)
    logged.write_bytes(records)
    other = hotstore("verify", f"--ack-log={log}", "--fragments=2", "--json=-")
    assert other.returncode == 3 and json.loads(other.stdout)["corrupt"] == 100


@pytest.mark.campaign
def test_the_rehearsal_qualifies_this_machine_in_short(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    argv = [sys.executable, "-m", "daq_bench.rig", "qualify", "--scenario", "hot-store-rehearsal", "--runs", str(runs)]
    environment = {**os.environ, "DAQ_BENCH_LOCK_DIR": str(tmp_path / "lock")}
    (tmp_path / "lock").mkdir()
    done = subprocess.run(
        [*argv, "--influx-url", "http://127.0.0.1:1"], capture_output=True, text=True, check=False, env=environment
    )
    bundle = next(runs.glob("*hot-store-rehearsal"))
    verdict = json.loads((bundle / "verdict.json").read_text(encoding="utf-8"))
    assert verdict["outcome"] in ("INADMISSIBLE", "FAIL"), done.stdout + done.stderr
    store = json.loads((bundle / "results" / "hot_store.json").read_text(encoding="utf-8"))
    assert store["summary"]["semantics_failed"] == 0 and store["summary"]["lost_events"] == 0
    assert "Key-value hot store" in (bundle / "report.html").read_text(encoding="utf-8")
