"""Files of a bundle that were made to harm: reading them ends at once, with an error that names the file."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from daq_bench.bench_model.base.errors import BenchError, ProfileError
from daq_bench.bench_model.bundle import files as bundle_files
from daq_bench.bench_model.bundle.column_file import FILE, difference, read_file
from daq_bench.bench_model.bundle.evidence import Evidence
from daq_bench.bench_model.bundle.files import (
    find_document,
    find_json,
    plain_file,
    read_bytes,
    read_json,
    read_json_lines,
    survey,
)
from daq_bench.bench_model.bundle.line_protocol import points_of
from daq_bench.bench_model.bundle.provenance import MANIFEST, altered_documents, digest_in, key_of, read_manifest
from daq_bench.bench_model.bundle.spool_content import read_content
from daq_bench.bench_model.bundle.telemetry_files import points_files, points_of_bundle
from daq_bench.bench_model.profiles.yaml_source import read_yaml

RUN = '{"schema_version": 1, "run_id": "run-1"}'


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fails what hangs, instead of waiting with it."""

    def late(number: int, frame: object) -> None:
        raise AssertionError(f"not done within {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    root = tmp_path / "run-1"
    (root / "telemetry").mkdir(parents=True)
    (root / "results").mkdir()
    (root / "run.json").write_text(RUN, encoding="utf-8")
    return root


def link_to(target: str) -> Callable[[Path], None]:
    return lambda file: file.symlink_to(target)


def bound_socket(file: Path) -> None:
    here = Path.cwd()
    os.chdir(file.parent)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(file.name)
    finally:
        os.chdir(here)


ODD: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a link to a device": link_to("/dev/zero"),
    "a link to a file": link_to("/etc/hostname"),
    "a link to itself": lambda file: file.symlink_to(file.name),
    "a link to nothing": link_to("/nowhere"),
    "a folder": Path.mkdir,
    "a socket": bound_socket,
}
READERS: dict[str, Callable[[Path, str], object]] = {
    "bytes": read_bytes,
    "document": find_document,
    "lines": read_json_lines,
    "digest": digest_in,
    "path": plain_file,
    "points": lambda bundle, name: list(points_of(bundle / name, {"cpu"})),
    "content": lambda bundle, name: read_content(bundle / name),
    "manifest": lambda bundle, name: read_manifest(bundle / name),
    "signature": lambda bundle, name: key_of(bundle / name.removesuffix(".sig")),
    "columns": lambda bundle, name: read_file(bundle / name),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_plain_file_is_refused_by_every_reader(bundle: Path, odd: str, reader: str) -> None:
    name = "x.sig"
    ODD[odd](bundle / name)
    with within(5), pytest.raises(BenchError, match=r"x\.sig"):
        READERS[reader](bundle, name)


@pytest.mark.parametrize("name", ["results/cost.json", "telemetry/points.lp"])
def test_no_folder_on_the_way_is_a_link(bundle: Path, tmp_path: Path, name: str) -> None:
    folder = Path(name).parent.name
    (bundle / folder).rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / Path(name).name).write_text("{}", encoding="utf-8")
    (bundle / folder).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BenchError, match=folder):
        plain_file(bundle, name)
    with pytest.raises(BenchError, match="link or a special file"):
        Evidence.load(bundle)


@pytest.mark.parametrize(
    "name", ["../run-1/run.json", "/etc/hostname", "results/../run.json", "run.json\0", "", "a//b"]
)
def test_a_name_that_leads_out_of_the_bundle_is_refused(bundle: Path, name: str) -> None:
    with pytest.raises(BenchError, match="names no file inside of a bundle"):
        read_json(bundle, name)


@pytest.mark.parametrize(("name", "odd"), [("telemetry/points.lp", "a pipe"), ("results/x.json", "a link to a device")])
def test_the_judge_refuses_a_bundle_with_anything_odd_in_it(bundle: Path, name: str, odd: str) -> None:
    ODD[odd](bundle / name)
    with within(5), pytest.raises(BenchError, match="link or a special file"):
        Evidence.load(bundle)
    with within(5), pytest.raises(BenchError, match=Path(name).name):
        list(points_of_bundle(bundle, {"cpu"})) if "points" in name else find_json(bundle, name)


@pytest.mark.parametrize("name", ["run.json", MANIFEST, "results/x.json", f"{MANIFEST}.sig"])
def test_gigabytes_are_refused_before_they_are_read(bundle: Path, name: str) -> None:
    with (bundle / name).open("ab") as file:
        file.truncate(5 << 30)  # sparse: takes no room
    with within(5), pytest.raises(BenchError, match=r"has 5368709120 bytes; such a file has \d+ at most"):
        {MANIFEST: altered_documents, f"{MANIFEST}.sig": lambda at: key_of(at / MANIFEST)}.get(name, Evidence.load)(
            bundle
        )


def test_a_bundle_larger_than_any_is_refused_before_it_is_hashed(bundle: Path) -> None:
    with (bundle / "telemetry" / "points.lp").open("ab") as file:
        file.truncate(bundle_files.BUNDLE_BYTES_MAX + 1)
    with within(5), pytest.raises(BenchError, match="holds more than"):
        survey(bundle)
    with within(5), pytest.raises(BenchError, match="such a file has"):
        points_files(bundle)


def test_a_line_without_end_is_refused(bundle: Path) -> None:
    file = bundle / "telemetry" / "points.lp"
    with file.open("ab") as stream:
        stream.truncate(1 << 30)
    for read in (lambda: list(points_of(file, {"cpu"})), lambda: read_content(file)):
        with within(10), pytest.raises(BenchError, match="a line of more than"):
            read()


BAD_JSON = {
    "NaN": ('{"x": NaN}', "NaN is no number"),
    "infinity": ('{"x": [-Infinity]}', "-Infinity is no number"),
    "a number beyond all": ('{"x": 1e400}', "beyond every number"),
    "a long integer": ('{"x": %s}' % ("9" * 41), "integer of 41 characters"),
    "a very long integer": ('{"x": -%s}' % ("9" * 10_000_000), "integer of 10000001 characters"),
    "deep lists": ("[" * 65 + "]" * 65, "deeper than 64 levels"),
    "very deep objects": ('{"a":' * 2_000_000, "deeper than 64 levels"),
    "deep without an end": ("[" * 10_000_000, "deeper than 64 levels"),
    "a key twice": ('{"ok": false, "ok": true}', "key 'ok' stands twice"),
    "a byte-order mark": ('\ufeff{"x": 1}', "byte-order mark"),
    "half a character": ('{"x": "\\ud800"}', "surrogates not allowed"),
    "quotes without an end": ('"' + '\\"' * 2_000_000, "Unterminated string"),
    "nothing": ("", "Expecting value"),
    "two values": ("{} {}", "Extra data"),
}


@pytest.mark.parametrize("what", BAD_JSON)
def test_what_is_no_json_is_refused_with_its_file(bundle: Path, what: str) -> None:
    text, message = BAD_JSON[what]
    (bundle / "results" / "x.json").write_text(text, encoding="utf-8")
    with within(10), pytest.raises(BenchError, match=r"results/x\.json is not valid JSON") as raised:
        Evidence.load(bundle)
    assert message in str(raised.value) and "sound copy" in str(raised.value) and len(str(raised.value)) < 500


@pytest.mark.parametrize("content", [b'{"x": "\xff"}', '{"x": 1}'.encode("utf-16"), b"\x80"])
def test_what_is_no_utf8_is_refused(bundle: Path, content: bytes) -> None:
    (bundle / "results" / "x.json").write_bytes(content)
    with pytest.raises(BenchError, match=r"x\.json is not valid JSON"):
        Evidence.load(bundle)


def test_json_at_its_bounds_is_read(bundle: Path) -> None:
    text = f'{{"brackets": "{"[{" * 500}", "n": {"9" * 40}, "deep": {"[" * 63 + "]" * 63}}}'
    (bundle / "results" / "x.json").write_text(text, encoding="utf-8")
    found = read_json(bundle, "results/x.json")
    assert (found["n"], found["brackets"]) == (int("9" * 40), "[{" * 500)
    assert find_json(bundle, "results/none.json") is None and find_document(bundle, "none/none.json") is None


def test_a_list_is_no_document(bundle: Path) -> None:
    (bundle / "results" / "x.json").write_text("[]", encoding="utf-8")
    with pytest.raises(BenchError, match="holds no JSON object"):
        Evidence.load(bundle)


def test_a_column_file_that_unpacks_to_more_than_it_is_is_refused(bundle: Path) -> None:
    import numpy as np

    np.savez_compressed(bundle / FILE, index=np.zeros(1 << 26, dtype=np.uint8))
    with within(5), pytest.raises(BenchError, match="compressed"):
        difference(bundle)


YAML_BOMBS = {
    "aliases": "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(
        f"{new}: &{new} [{', '.join(f'*{old}' for _ in range(10))}]\n"
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    ),
    "a part of itself": "&a [*a]\n",
    "depth": "[" * 500_000,
    "depth of dashes": "- " * 500_000,
    "depth of question marks": "? " * 500_000,
    "size": "x: " + "y" * (2 << 20),
    "a long number": f"x: {'9' * 10_000}\n",
}


@pytest.mark.parametrize("what", YAML_BOMBS)
def test_yaml_that_grows_when_it_is_read_is_refused(tmp_path: Path, what: str) -> None:
    file = tmp_path / "x.yml"
    file.write_text(YAML_BOMBS[what], encoding="utf-8")
    with within(20), pytest.raises(ProfileError, match=r"x\.yml"):
        read_yaml(file)


def test_a_pipe_is_no_yaml(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.yml")
    with within(5), pytest.raises(ProfileError, match=r"x\.yml"):
        read_yaml(tmp_path / "x.yml")
