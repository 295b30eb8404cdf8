"""Bundles of several control nodes in one store: whole or not there, and never one in the place of another. A folder, and real S3 calls."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moto.server import ThreadedMotoServer

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "inventory" / "tests"))
from evidence_factory import conclude
from nights_factory import NightPlan, write_night

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.nights.run_history import read_all
from daq_bench.rig.checking.sealing import altered_evidence, seal_reports
from daq_bench.rig.cli import main
from daq_bench.rig.store.gather import COPIED, REFUSED, THERE, UNSEALED, Gathered, fetch, gather
from daq_bench.rig.store.place import WORK, Store

BUCKET = "laboratory"


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of a server on loopback that speaks S3."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    if request.param == "folder":
        return Store(str(tmp_path / "store"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", request.getfixturevalue("s3"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    bucket = f"{BUCKET}-{abs(hash(tmp_path))}"
    s3fs.S3FileSystem().mkdir(bucket)
    return Store(f"s3://{bucket}/runs")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "node-a"
    for number in range(2):
        bundle = write_night(folder, NightPlan(number))
        (bundle / "report.html").write_text("<p>a report</p>", encoding="utf-8")
        seal_reports(bundle)
    (folder / "latest").symlink_to(NightPlan(1).run_id)
    return folder


def ends(found: list[Gathered]) -> list[str]:
    return [one.what for one in found]


def gathered(runs: Path, store: Store, whole: bool = False) -> list[Gathered]:
    return gather(runs, store, whole, lambda one: None)


def back(store: Store, folder: Path) -> list[Gathered]:
    return fetch(store, folder, lambda one: None)


def test_a_store_whose_client_refuses_is_one_error(
    runs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """botocore without rights, whose error is no OSError; ftp where nobody listens."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in (
        ("HOME", str(tmp_path)),
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
    ):
        monkeypatch.setenv(name, value)
    for place, reason in (("s3://nobodys/runs", "credentials"), ("ftp://127.0.0.1:9/runs", "Connection refused")):
        assert main(["gather", "--runs", str(runs), "--store", place]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"error: --store {place} cannot be used: ")
        assert reason in said
        assert "Traceback" not in said


def test_two_nodes_fill_one_store_and_a_third_reads_it(runs: Path, store: Store, tmp_path: Path) -> None:
    write_night(tmp_path / "node-b", NightPlan(5, candidate="server-b"))
    assert ends(gathered(runs, store)) == [COPIED, COPIED]
    assert ends(gathered(tmp_path / "node-b", store)) == [COPIED]
    assert ends(gathered(runs, store)) == [THERE, THERE]
    assert ends(gathered(runs, store, whole=True)) == [THERE, THERE]
    assert ends(back(store, tmp_path / "all")) == [COPIED] * 3
    assert ends(back(store, tmp_path / "all")) == [THERE] * 3
    nights, broken = read_all([tmp_path / "all"])
    assert [night.outcome for night in nights] == ["PASS"] * 3 and not broken
    assert (tmp_path / "all" / NightPlan(1).run_id / "report.html").read_text(encoding="utf-8") == "<p>a report</p>"
    assert not list((tmp_path / "all" / WORK).iterdir())


def test_another_run_of_the_same_name_is_refused_and_neither_is_changed(
    runs: Path, store: Store, tmp_path: Path
) -> None:
    other = write_night(tmp_path / "node-b", NightPlan(0, lost=1.0))
    gathered(runs, store)
    (refused,) = gathered(tmp_path / "node-b", store)
    assert refused.what == REFUSED and "with other content" in refused.reason
    back(store, tmp_path / "all")
    found = {night.id: night.outcome for night in read_all([tmp_path / "all"])[0]}
    assert found[other.name] == "PASS"
    assert not altered_evidence(other)
    assert ends(back(store, tmp_path / "node-b")) == [REFUSED, COPIED]


def test_what_is_altered_or_not_sealed_does_not_travel_and_the_others_do(
    runs: Path, store: Store, tmp_path: Path
) -> None:
    (runs / NightPlan(0).run_id / "facts" / "host.json").write_text("{}", encoding="utf-8")
    running = write_night(runs, NightPlan(3))
    (running / "MANIFEST.sha256").unlink()
    report = write_night(runs, NightPlan(4))
    (report / "report.html").write_text("sealed", encoding="utf-8")
    seal_reports(report)
    (report / "report.html").write_text("forged", encoding="utf-8")
    renamed = write_night(runs, NightPlan(5), folder="zz-the-best")
    found = gathered(runs, store)
    assert ends(found) == [REFUSED, COPIED, UNSEALED, REFUSED, REFUSED]
    assert found[4].reason.startswith(f"{renamed}: the folder is named 'zz-the-best'")
    assert found[4].reason.endswith("Give it its run's name again")
    assert "facts/host.json: altered" in found[0].reason and "report.html: altered" in found[3].reason
    assert store.runs() == [NightPlan(1).run_id]


def test_a_copy_that_was_cut_short_counts_nowhere_and_goes_on(
    runs: Path, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, sent = store.put, list[str]()

    def cut(run: str, name: str, source: Any) -> None:
        if len(sent) == 5:
            raise OSError("the line went dead")
        sent.append(name)
        put(run, name, source)

    monkeypatch.setattr(store, "put", cut)
    with pytest.raises(OSError, match="went dead"):
        gathered(runs, store)
    assert store.runs() == []
    assert ends(back(store, tmp_path / "early")) == []
    again: list[str] = []
    monkeypatch.setattr(store, "put", lambda run, name, source: (again.append(name), put(run, name, source)))
    assert ends(gathered(runs, store)) == [COPIED, COPIED]
    assert len(set(sent)) == 5
    first = again[: again.index("MANIFEST.sha256") + 1]
    assert not set(first) & set(sent)  # what had arrived is not sent again
    assert ends(back(store, tmp_path / "all")) == [COPIED, COPIED]


def test_what_arrives_otherwise_than_it_was_sent_is_refused(
    runs: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = store.put

    def flipped(run: str, name: str, source: Any) -> None:
        if name == "verdict.json":
            (runs.parent / "flipped").write_bytes(source.read().replace(b"PASS", b"FAIL"))
            source = (runs.parent / "flipped").open("rb")
        put(run, name, source)

    monkeypatch.setattr(store, "put", flipped)
    found = gathered(runs, store)
    assert ends(found) == [REFUSED, REFUSED] and "did not arrive" in found[0].reason
    assert store.runs() == []
    monkeypatch.undo()
    assert ends(gathered(runs, store)) == [COPIED, COPIED]


def test_a_bundle_that_somebody_altered_in_the_store_is_found(runs: Path, store: Store, tmp_path: Path) -> None:
    gathered(runs, store)
    one, two = (NightPlan(number).run_id for number in range(2))
    store._fs.rm_file(f"{store._root}/{one}/verdict.json")
    store._fs.pipe_file(f"{store._root}/{two}/facts/host.json", b"{}")
    assert ends(gathered(runs, store)) == [REFUSED, THERE]
    assert ends(gathered(runs, store, whole=True)) == [REFUSED, REFUSED]
    assert ends(back(store, tmp_path / "all")) == [REFUSED, REFUSED]
    assert read_all([tmp_path / "all"]) == ([], [])


def test_of_two_nodes_at_the_same_run_one_waits(runs: Path, store: Store, tmp_path: Path) -> None:
    """As when both began at once: the other's claim is there, but no file of it."""
    assert store.claim(NightPlan(0).run_id, "another node-b") == "another node-b"
    found = gathered(runs, store)
    assert ends(found) == [REFUSED, COPIED]
    assert "being gathered with other content (another node-b)" in found[0].reason


@pytest.mark.parametrize("name", ["../../escaped", "a/../../../escaped"])
def test_a_store_cannot_write_outside_of_the_bundle(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    store = Store(str(tmp_path / "store"))
    gathered(runs, store)
    monkeypatch.setattr(store, "sizes", lambda run: {name: 1, "MANIFEST.sha256": 1})
    assert ends(back(store, tmp_path / "all")) == [REFUSED, REFUSED]
    assert not list(tmp_path.rglob("escaped"))


GATHER = """
import sys, time
from pathlib import Path
from daq_bench.rig.store import gather, place
slow = place.Store.put
def put(self, run, name, source):
    slow(self, run, name, source)
    print(name, flush=True)
    time.sleep(0.2)
place.Store.put = put
gather.gather(Path(sys.argv[1]), place.Store(sys.argv[2]), False, print)
"""


def test_a_gathering_that_is_killed_leaves_no_bundle_and_is_taken_up(runs: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-c", GATHER, str(runs), str(tmp_path / "store")]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert process.stdout is not None
    for _ in range(4):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    store = Store(str(tmp_path / "store"))
    assert store.runs() == [] and read_all([tmp_path / "store"]) == ([], [])
    assert ends(gathered(runs, store)) == [COPIED, COPIED]
    assert not [bundle for bundle in runs.iterdir() if altered_evidence(tmp_path / "store" / bundle.resolve().name)]


def test_the_command_counts_refuses_and_ends_with_a_status(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["gather", "--store", str(tmp_path / "store"), "--runs", str(runs)]
    assert main(words) == 0
    assert capsys.readouterr().out == "2 copied\n"
    seal_reports(conclude(_spoiled(runs / NightPlan(0).run_id)))
    assert main(words) == 1
    said = capsys.readouterr()
    assert said.out == "1 already there, 1 refused\n" and "with other content" in said.err
    assert main([*words[:3], "--runs", str(tmp_path / "nowhere")]) == 2
    assert "is no folder" in capsys.readouterr().err


@pytest.mark.parametrize("how", ["renamed", "without its run"])
def test_no_bundle_stays_behind_unnamed(runs: Path, tmp_path: Path, how: str) -> None:
    bundle = runs / NightPlan(0).run_id
    if how == "renamed":
        bundle.rename(runs / "odd name é")
    else:
        (bundle / "run.json").unlink()
    found = gathered(runs, Store(str(tmp_path / "store")))
    assert sorted(ends(found)) == [COPIED, REFUSED]
    (refused,) = (one for one in found if one.what == REFUSED)
    assert ("is no run's name" if how == "renamed" else "run.json: missing") in refused.reason


def test_a_bundle_that_cannot_be_read_leaves_the_others(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = runs / NightPlan(0).run_id

    def unreadable(bundle: Path) -> list[Any]:
        if bundle == broken:
            raise PermissionError(errno.EACCES, "Permission denied", str(bundle / "run.json"))
        return []

    monkeypatch.setattr("daq_bench.rig.store.gather.altered_evidence", unreadable)
    found = gathered(runs, Store(str(tmp_path / "store")))
    assert ends(found) == [REFUSED, COPIED] and "cannot be read" in found[0].reason


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_store_that_takes_no_more_is_named(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(*words: Any) -> None:
        raise OSError(number, os.strerror(number))

    store = Store(str(tmp_path / "store"))
    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(BenchError, match=f"store: {os.strerror(number)}, at {NightPlan(0).run_id}. Mend it"):
        gathered(runs, store)
    monkeypatch.undo()
    assert ends(gathered(runs, store)) == [COPIED, COPIED]


def _spoiled(bundle: Path) -> Path:
    text = (bundle / "results" / "night.json").read_text(encoding="utf-8")
    (bundle / "results" / "night.json").write_text(text.replace('"lost": [0.0]', '"lost": [3.0]'), encoding="utf-8")
    return bundle


@pytest.mark.parametrize(("address", "words"), [
    ("s3://user:secret@bucket/runs", "holds a password"), ("nemo://bucket", "is no folder and no address"), (" ", "--store is empty"),
])  # fmt: skip
def test_an_address_that_is_none_is_one_clear_error(address: str, words: str) -> None:
    with pytest.raises(BenchError, match=words) as caught:
        Store(address)
    assert "secret" not in str(caught.value)


def test_a_store_that_is_gone_is_an_error_and_not_an_empty_history(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="there is no store"):
        back(Store(str(tmp_path / "store")), tmp_path / "all")


def test_a_store_that_is_a_file_is_told_as_one(tmp_path: Path) -> None:
    (tmp_path / "a-file").touch()
    with pytest.raises(BenchError, match=r"--store \S*a-file is a file\. Name a folder"):
        Store(str(tmp_path / "a-file"))
