"""Spools read into columns: the same values as record by record, whatever the records look like, and the same refusals."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle import column_file, columns
from daq_bench.bench_model.bundle.column_file import DRAWN, FILE, SPOOL, difference, load_columns, write_columns
from daq_bench.bench_model.bundle.columns import Columns, read_columns
from daq_bench.bench_model.bundle.provenance import MANIFEST, manifest_of

WANTED = {"cpu": None, "block_device": ("written_bytes_per_s",), "smart": None}
T = 1_795_259_239_578_120_901


def lines(number: int, seed: int = 1) -> list[str]:
    """Records as agents write them, some of them unlike the others of their series."""
    rng = random.Random(seed)
    found = []
    for index in range(number):
        at = T + index * 100_000_000 + rng.randrange(1000)
        found += [
            f"cpu,core={core},host=h user_fraction={rng.random()!r},system_fraction={rng.choice([0.0, 1e-07, 3.5])!r} {at}"
            for core in range(3)
        ]
        found.append(f"block_device,device=a read_ios={index}i,written_bytes_per_s={rng.random() * 1e9!r} {at}")
        found.append(f'memory free_bytes={index}i,note="a, b = c" {at}')
        if index % 7 == 0:
            found += [
                f'smart,device=a text="x y",healthy=true,temperature_degc=4{index % 10}i {at}',
                f"smart,device=a\\ b wear=-1i,half=+.5e0 {at}",
                f"cpu,core=0,host=h system_fraction=0.5,user_fraction=0.25 {at}",  # the other way round
                f"cpu,core=1,host=h user_fraction=1.5e+3 {at % 10**12}",
                "# thinned",
            ]
    return found


NO_NUMBERS = ("nan", "-inf", "Infinity", "1e400", "1_0", "\u0661", "9223372036854775808i", f"{'9' * 5000}i")


def write(folder: Path, text: str) -> Path:
    file = folder / "points.lp"
    file.write_bytes(text.encode("utf-8"))
    return file


def same(one: Columns, other: Columns) -> bool:
    assert (one.lines, one.torn) == (other.lines, other.torn)
    assert one.found.keys() == other.found.keys()
    for name, column in one.found.items():
        assert np.array_equal(column.times_ns, other.found[name].times_ns), name
        assert np.array_equal(column.values, other.found[name].values, equal_nan=True), name
        assert column.flag == other.found[name].flag
    return True


def carefully(file: Path) -> Columns:
    return columns._read_carefully(file, WANTED)


@pytest.mark.parametrize("end", ["\n", "", "\ncpu,core=0 user_fr"])
def test_columns_are_what_the_careful_reader_gives(tmp_path: Path, end: str) -> None:
    file = write(tmp_path, "\n".join(lines(200)) + end)
    assert same(read_columns(file, WANTED), carefully(file))


def test_blocks_and_processes_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Series span blocks; a block ends within a record and is moved to its end."""
    file = write(tmp_path, "\n".join(lines(150)) + "\n")
    expected = carefully(file)
    monkeypatch.setattr(columns, "BLOCK_BYTES", 777)
    assert same(read_columns(file, WANTED, workers=1), expected)
    monkeypatch.setattr(columns, "PARALLEL_FROM_BYTES", 1)
    assert same(read_columns(file, WANTED, workers=2), expected)


@pytest.mark.parametrize(
    "broken",
    [
        f"cpu,core=0,host=h user_fraction=1.2.3,system_fraction=0.5 {T}",
        f"cpu,core=0,host=h user_fraction=,system_fraction=0.5 {T}",
        "cpu,core=0,host=h user_fraction=0.1,system_fraction=0.5",
        f"cpu,core=0,host=h user_fraction=0.1,system_fraction=0.5 {T} 1",
        f"cpu,core=0,host=h user_fraction=0.1 system_fraction=0.5 {T}",
        f"cpu,core=0,host=h user_fraction=1-2,system_fraction=0.5 {T}",
        f"cpu,core=0,host=h user_fraction=1e,system_fraction=0.5 {T}",
        f"cpu,core user_fraction=0.1,system_fraction=0.5 {T}",
        f'cpu,core=0,host=h user_fraction="open {T}',
        *(f"cpu,core=0,host=h user_fraction=0.1,system_fraction={bad} {T}" for bad in NO_NUMBERS),
        "cpu,core=0,host=h user_fraction=0.1,system_fraction=0.5 99999999999999999999",
    ],
)
def test_an_unsound_record_is_refused_with_its_line(tmp_path: Path, broken: str) -> None:
    good = lines(40)
    file = write(tmp_path, "\n".join([*good[:101], broken, *good[101:]]) + "\n")
    with pytest.raises(ValueError, match=r"points\.lp:102: not line protocol"):
        read_columns(file, WANTED)


def test_what_is_not_utf8_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "points.lp"
    file.write_bytes("\n".join(lines(3)).encode() + b"\nmemory,a=\xff b=1 1\n")
    with pytest.raises(UnicodeDecodeError):
        read_columns(file, WANTED)


@pytest.mark.parametrize("lengths", [(1, 30), (30, 1, 30), (7, 7, 7), (9, 8, 20, 1, 1, 40), (3,)])
def test_a_series_whose_form_changes_is_read_in_its_order(tmp_path: Path, lengths: tuple[int, ...]) -> None:
    """An agent's first reading has no rates yet, and a reading in between may lack some."""
    found, number = [], 0
    for place, length in enumerate(lengths):
        more = (",written_bytes_per_s={0}.5", "", ',note="x, y",written_bytes_per_s=1e3')[place % 3]
        for _ in range(length):
            number += 1
            found.append(f"block_device,device=a read_ios={number}i{more.format(number)} {T + 1000 * (50 - number)}")
    file = write(tmp_path, "\n".join(found) + "\n")
    wanted = {"block_device": None}
    assert same(read_columns(file, wanted), columns._read_carefully(file, wanted))
    counts = read_columns(file, wanted).found["block_device", (("device", "a"),), "read_ios"]
    assert counts.values.tolist() == list(range(1, number + 1))


def test_line_ends_of_windows_are_read_as_before(tmp_path: Path) -> None:
    file = write(tmp_path, "\r\n".join(lines(20)) + "\r\n")
    assert same(read_columns(file, WANTED), carefully(file))


def test_an_empty_spool_has_no_columns(tmp_path: Path) -> None:
    assert read_columns(write(tmp_path, ""), WANTED) == Columns()


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    (tmp_path / "telemetry").mkdir()
    (tmp_path / SPOOL).write_text("\n".join(lines(100)) + "\n", encoding="utf-8")
    return tmp_path


def test_the_column_file_stands_for_its_spool(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert write_columns(bundle) is None  # a small spool needs none
    assert write_columns(bundle, least_bytes=0) == bundle / FILE
    (bundle / MANIFEST).write_bytes(manifest_of(bundle, [SPOOL, FILE]))
    assert difference(bundle) is None
    expected = read_columns(bundle / SPOOL, DRAWN)
    monkeypatch.setattr(
        "daq_bench.bench_model.bundle.column_file.read_columns", lambda *_: pytest.fail("the spool was read")
    )
    found = load_columns(bundle)
    assert found is not None and same(found, expected)


def test_a_column_file_of_another_spool_is_not_used(bundle: Path) -> None:
    write_columns(bundle, least_bytes=0)
    (bundle / SPOOL).write_text("\n".join(lines(100, seed=2)) + "\n", encoding="utf-8")
    (bundle / MANIFEST).write_bytes(manifest_of(bundle, [SPOOL, FILE]))
    found = load_columns(bundle)
    assert found is not None and same(found, read_columns(bundle / SPOOL, DRAWN))
    assert difference(bundle) == f"{FILE}: was made of another {SPOOL}"


def test_forged_columns_are_noticed(bundle: Path) -> None:
    write_columns(bundle, least_bytes=0)
    content = (bundle / FILE).read_bytes()
    value = read_columns(bundle / SPOOL, DRAWN).found
    column = next(iter(value.values())).values
    assert content.count(column.tobytes()) == 1
    forged = column.copy()
    forged[3] += 1.0
    (bundle / FILE).write_bytes(content.replace(column.tobytes(), forged.tobytes()))
    try:
        assert difference(bundle) == f"{FILE}: holds other values than {SPOOL}"
    except BenchError as error:  # the archive's own checksum says so first
        assert "is no file of columns" in str(error)


def test_a_broken_column_file_is_named(bundle: Path) -> None:
    write_columns(bundle, least_bytes=0)
    (bundle / MANIFEST).write_bytes(manifest_of(bundle, [SPOOL, FILE]))
    (bundle / FILE).write_bytes((bundle / FILE).read_bytes()[:100])
    with pytest.raises(BenchError, match=r"columns\.npz is no file of columns .* Remove it"):
        load_columns(bundle)


def test_a_column_file_of_an_unknown_version_is_named(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_file, "VERSION", 3)
    write_columns(bundle, least_bytes=0)
    (bundle / MANIFEST).write_bytes(manifest_of(bundle, [SPOOL, FILE]))
    monkeypatch.undo()
    with pytest.raises(BenchError, match="its version is 3, and this bench reads 2"):
        load_columns(bundle)
