"""hotstore as a process: it ends in time and with a result whatever happens to its store, and overwrites nothing of it."""

from __future__ import annotations

import ctypes.util
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_helpers import wait_for

from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.rig.base.settings import Layout

LAYOUT = Layout()
pytestmark = pytest.mark.skipif(not LAYOUT.hotstore.exists(), reason="hotstore is not built")
FEED = ["--consumers=0", "--warm-up=0", "--seconds=20"]
LONG = ["--warm-up=0", "--seconds=120"]
REFUSED, INTERRUPTED = 2, 130


class Store:
    """A store with its logs in a folder of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path, self.log = folder, folder / "store", folder / "acks"
        self.result = folder / "result.json"
        self.started: list[subprocess.Popen[str]] = []

    def argv(self, command: str, *options: str) -> list[str]:
        common = [f"--dir={self.path}", "--capacity=8MiB", "--value-size=1000", f"--json={self.result}"]
        return [str(LAYOUT.hotstore), command, *common, *options]

    def run(self, command: str, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.argv(command, *options), capture_output=True, text=True, check=False, timeout=60)

    def fill(self) -> None:
        done = self.run("bench", *FEED, "--events=500", f"--ack-log={self.log}")
        assert done.returncode == 0, done.stderr

    def start(self, *options: str) -> subprocess.Popen[str]:
        # hotstore respects nohup, under which these tests may run.
        before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
        try:
            process = subprocess.Popen(self.argv("bench", *options), stderr=subprocess.PIPE, text=True)
        finally:
            signal.signal(signal.SIGHUP, before)
        self.started.append(process)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not (self.path / "data.mdb").exists():
            time.sleep(0.05)
        time.sleep(1)
        return process

    def said(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.result.read_text(encoding="utf-8"))
        return found


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path)
    yield made
    for process in made.started:  # a test that failed may have left it
        if process.poll() is None:
            process.kill()
            process.communicate(timeout=120)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("options", [[], ["--consume=getany", "--hold=100000"]])
def test_a_signal_ends_it_in_time_with_a_result(store: Store, number: int, options: list[str]) -> None:
    process = store.start(*LONG, *options)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED
    assert store.said()["status"] == "interrupted"


def test_a_signal_ends_it_even_when_its_work_stands_still(store: Store) -> None:
    process = store.start(*LONG)
    work = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()[0])
    os.kill(work, signal.SIGSTOP)
    process.terminate()
    _, text = process.communicate(timeout=120)
    assert process.returncode == INTERRUPTED and "ended by force" in text
    assert store.said()["status"] == "interrupted"
    assert not Path(f"/proc/{work}").exists()


def test_killed_it_takes_its_work_along_and_keeps_what_it_acknowledged(store: Store) -> None:
    process = store.start(*LONG, f"--ack-log={store.log}")
    process.kill()
    process.communicate(timeout=120)
    assert (store.path / "hotstore.not-synced").exists()
    done = store.run("verify", f"--ack-log={store.log}")
    assert done.returncode == 0, done.stderr
    assert store.said()["status"] == "intact" and store.said()["acknowledged"]


def test_a_file_that_is_cut_in_mid_run_is_a_failure_with_a_name(store: Store) -> None:
    process = store.start(*LONG)
    os.truncate(store.path / "data.mdb", 8192)
    _, text = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "hotstore: " in text and str(store.path) in text
    assert store.said()["status"] == "failed" and store.said()["error"]


@pytest.mark.parametrize("consume", ["direct", "getany"])
def test_a_load_on_a_damaged_store_ends_and_says_so(store: Store, consume: str) -> None:
    store.fill()
    file = store.path / "data.mdb"
    content = bytearray(file.read_bytes())
    for page in range(3, len(bytes(content).rstrip(b"\0")) // 4096, 2):
        content[page * 4096 : (page + 1) * 4096] = bytes(4096)
    file.write_bytes(content)
    done = store.run("bench", "--warm-up=0", "--seconds=5", f"--consume={consume}", "--first-event=100")
    assert done.returncode == 1 and "hotstore: " in done.stderr
    assert store.said()["status"] == "failed"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--warm-up=nan"], "--warm-up nan: give 0 to 2592000 seconds"),
        (["--hold=1e18"], "--hold 1e18: give 0 to 2592000"),
        (["--seconds=inf"], "--seconds inf: give"),
        (["--interval=inf"], "--interval inf: give"),
        (["--lease=-1"], "--lease -1: give"),
        (["--until-empty=nan"], "--until-empty nan: give"),
        (["--patience=1e300"], "--patience 1e300: give"),
        (["--wait=-inf"], "--wait -inf: give"),
        (["--capacity=18446744073709551615"], "--capacity 18446744073709551615: give 1MiB to 64TiB"),
        (["--level2-capacity=1"], "--level2-capacity 1: give 1MiB to 64TiB"),
        (["--backlog=18446744073709551615"], "--backlog 18446744073709551615: give 1B to 64TiB"),
        (["--value-size=18446744073709551615"], "--value-size 18446744073709551615: give 1B to 64MiB"),
        (["--stride=18446744073709551615"], "--stride 18446744073709551615: give a whole number from 1 to 4294967296"),
        (["--stride=0"], "--stride 0: give a whole number from 1"),
        (["--events=-1"], "--events -1: give a whole number from 0"),
        (["--events=18446744073709551616"], "--events 18446744073709551616: give a whole number from 0"),
        (["--first-event=-1"], "--first-event -1: give a whole number from 0"),
        (["--events=18446744073709551615", "--stride=3"], "--events 18446744073709551615: give"),
        (["--level=2"], "--level 2: this store has none"),
        (["--level=3"], "--level 3: give 1 to 2"),
    ],
)
def test_numbers_out_of_bounds_are_refused_at_once(store: Store, options: list[str], words: str) -> None:
    argv = [str(LAYOUT.hotstore), "bench", f"--dir={store.path}", *options]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == REFUSED and words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and not store.path.exists()


def test_nothing_to_verify_is_no_success(store: Store) -> None:
    store.fill()
    for log in store.log.iterdir():
        log.unlink()
    done = store.run("verify", f"--ack-log={store.log}")
    assert done.returncode == REFUSED and "nothing was acknowledged there" in done.stderr


def test_a_garbled_log_is_named(store: Store) -> None:
    store.fill()
    log = next(store.log.glob("put-*.acks"))
    content = bytearray(log.read_bytes())
    content[100] ^= 1
    log.write_bytes(content)
    done = store.run("verify", f"--ack-log={store.log}")
    assert done.returncode == REFUSED and f"{log}: record 5 is garbled" in done.stderr


def test_a_result_does_not_overwrite_the_store_or_its_logs(store: Store) -> None:
    store.fill()
    link = store.folder / "link.json"
    (store.folder / "other").symlink_to(store.path)
    os.link(store.path / "data.mdb", link)
    log = next(store.log.glob("put-*.acks"))
    for place in (store.path / "data.mdb", store.folder / "other" / "new.json", link, log, store.path):
        store.result = place
        done = store.run("verify", f"--ack-log={store.log}")
        assert done.returncode == REFUSED and f"--json {place}" in done.stderr, done.stderr
    store.result = store.folder / "result.json"
    assert store.run("verify", f"--ack-log={store.log}").returncode == 0


def test_a_store_after_a_crash_of_the_machine_is_verified_and_not_written(store: Store) -> None:
    store.fill()
    (store.path / "hotstore.not-synced").write_text("00000000-0000-4000-8000-000000000000\n", encoding="ascii")
    done = store.run("bench", *FEED, "--events=1", "--first-event=1000")
    assert done.returncode == REFUSED and "the machine went down" in done.stderr
    done = store.run("verify", f"--ack-log={store.log}")
    assert done.returncode == 0 and "the machine went down" in done.stderr
    assert store.said()["unsynced_crash"] is True


def hotstore(*options: str) -> subprocess.CompletedProcess[str]:
    argv = [str(LAYOUT.hotstore), "bench", *options]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--engine=memcached"], "memcached"),
        (["--engine=raw-redis", "--endpoint=127.0.0.1:1", "--pipeline=0"], "--pipeline 0: give 1 to 1024"),
        (["--engine=raw-redis", "--endpoint=127.0.0.1:1", "--pipeline=100000"], "--pipeline 100000: give 1 to 1024"),
        (["--engine=lmdb", "--dir=x", "--pipeline=16"], "--pipeline 16: --engine lmdb takes one operation at a time"),
        (["--engine=redis", "--endpoint=127.0.0.1:1", "--pipeline=16"], "--engine raw-redis"),
        (["--engine=raw-redis"], "--endpoint: --engine raw-redis needs one server"),
        (["--engine=raw-redis", f"--endpoint=unix:/{'x' * 150}"], "has 1 to 107 bytes, this one 151"),
        (["--engine=raw-redis", "--endpoint=unix:/nonexistent/redis.sock"], "there is no Unix socket"),
        (["--engine=redis-cluster", "--endpoint=unix:/nonexistent/redis.sock"], "name each other by HOST:PORT"),
        (["--engine=raw-redis", "--endpoint=127.0.0.1:1", "--fragments=2"], "--fragments 2: --engine raw-redis"),
        (["--engine=raw-lmdb"], "--dir: --engine raw-lmdb needs"),
        (["--engine=raw-lmdb", "--dir=x", "--consume=getany"], "leave out --consume getany"),
        (["--engine=raw-lmdb", "--dir=x", "--level2-dir=y"], "has no level 2"),
        (["--engine=rocksdb", "--dir=x", "--rocksdb-library=librocksdb-none.so"], "librocksdb-none.so"),
        (["--engine=rocksdb", "--dir=x", "--rocksdb-library=libm.so.6"], "is not RocksDB"),
        (["--dir=x", "--backlog=0"], "--backlog 0: give 1B to 64TiB"),
        (["--dir=x", "--backlog=4GiB"], "--capacity is 1GiB"),
        (["--dir=x", "--backlog=32TiB", "--capacity=64TiB"], "of memory available: give a smaller --backlog"),
        (["--dir=x", "--backlog=1MiB", "--backlog-floor=2MiB"], "--backlog-floor 2MiB: give 0B to 1MiB"),
        (["--dir=x", "--backlog-floor=1MiB", "--events=10"], "leave out --events"),
    ],
)
def test_a_wrong_engine_pipeline_socket_or_backlog_is_refused_by_name(
    options: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = hotstore(*options)
    assert done.returncode == REFUSED and words in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["semantics", "verify"])
def test_a_baseline_has_no_semantics_and_is_not_verified(command: str) -> None:
    argv = [str(LAYOUT.hotstore), command, "--engine=raw-lmdb", "--dir=x", "--ack-log=y"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == REFUSED


@pytest.mark.parametrize("engine", ["lmdb", "raw-lmdb", "rocksdb"])
def test_the_backlog_is_filled_and_held_in_process(store: Store, engine: str) -> None:
    if engine == "rocksdb" and ctypes.util.find_library("rocksdb") is None:
        pytest.skip("RocksDB is not installed")
    options = [f"--engine={engine}", f"--dir={store.path}", f"--json={store.result}", "--capacity=64MiB"]
    done = hotstore(
        *options, "--backlog=16MiB", "--backlog-floor=14MiB", "--warm-up=0", "--seconds=1", "--interval=0.2"
    )
    assert done.returncode == 0, done.stderr
    said = store.said()
    check_document(said, "hotstore-bench", "said")
    parameters, samples = said["parameters"], said["samples_backlog_bytes"]
    assert isinstance(parameters, dict) and isinstance(samples, list)
    assert (parameters["engine"], parameters["transport"], parameters["pipeline"]) == (engine, "in-process", 1)
    assert min(samples) > 13 << 20 and max(samples) < 17 << 20
    assert "kill -9" in str(said["promise"])


class Redis:
    """A server of the test's own, on a Unix socket and on no port."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("redis-server") or shutil.which("redis-check-rdb")
        if program is None:
            pytest.skip("redis-tools is not installed")
        (folder / "redis-server").symlink_to(program)
        self.socket = folder / "redis.sock"
        argv = [str(folder / "redis-server"), "--port", "0", "--unixsocket", str(self.socket), "--save", ""]
        self.process = subprocess.Popen([*argv, "--dir", str(folder)], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not self.socket.exists():
            time.sleep(0.05)

    def keys(self) -> int:
        """How many it holds."""
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(10)
            link.connect(str(self.socket))
            link.sendall(b"DBSIZE\r\n")
            return int(link.makefile("rb").readline()[1:])


@pytest.fixture
def redis() -> Iterator[Redis]:
    with tempfile.TemporaryDirectory(prefix="hotstore-") as folder:  # its path is short enough for a socket
        made = Redis(Path(folder))
        yield made
        made.process.kill()
        made.process.wait(timeout=120)


@pytest.mark.parametrize(("engine", "pipeline"), [("raw-redis", 1), ("raw-redis", 16), ("raw-redis", 64), ("redis", 1)])
def test_redis_over_a_unix_socket_keeps_every_value(redis: Redis, tmp_path: Path, engine: str, pipeline: int) -> None:
    result = tmp_path / "result.json"
    options = [f"--engine={engine}", f"--endpoint=unix:{redis.socket}", f"--pipeline={pipeline}", f"--json={result}"]
    done = hotstore(*options, "--backlog=2MiB", "--warm-up=0", "--seconds=1", "--interval=0.2")
    assert done.returncode == 0, done.stderr
    said = json.loads(result.read_text(encoding="utf-8"))
    check_document(said, "hotstore-bench", "said")
    assert (said["parameters"]["transport"], said["parameters"]["pipeline"]) == ("unix", pipeline)
    assert said["corrupt"] == 0 and said["put"]["operations"] > 0 and said["consume"]["operations"] > 0
    assert "volatile" in said["promise"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])  # by the latter its socket goes too
def test_redis_that_dies_in_mid_run_is_a_failure_with_a_name(redis: Redis, tmp_path: Path, number: int) -> None:
    result = tmp_path / "result.json"
    argv = [str(LAYOUT.hotstore), "bench", "--engine=raw-redis", f"--endpoint=unix:{redis.socket}", "--pipeline=16"]
    process = subprocess.Popen([*argv, *LONG, f"--json={result}"], stderr=subprocess.PIPE, text=True)
    wait_for(lambda: redis.keys() > 0, "the load's first keys", 60)
    redis.process.send_signal(number)
    _, text = process.communicate(timeout=60)
    assert process.returncode == 1 and "was lost in mid-run" in text
    said = json.loads(result.read_text(encoding="utf-8"))
    assert said["status"] == "failed" and str(redis.socket) in said["error"]


def test_a_server_that_holds_the_keys_is_refused_and_not_overwritten(redis: Redis) -> None:
    options = ["--engine=raw-redis", f"--endpoint=unix:{redis.socket}", "--consumers=0", "--events=100", "--warm-up=0"]
    assert hotstore(*options, "--seconds=5").returncode == 0
    done = hotstore(*options, "--seconds=5")
    assert done.returncode == 1 and "use an empty server" in done.stderr
