"""A program's needs, a machine's offers, the .deb files that close the gap, and requests to InfluxDB."""

from __future__ import annotations

import ast
import http.server
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import bench_apt_folder
import pytest
from ansible.module_utils import bench_elf, bench_fit, bench_influx, bench_influxql

ANSIBLE = Path(__file__).resolve().parents[1]
REPOSITORY = ANSIBLE.parent
RUNTIME = {"machine": "x86_64", "glibc": "2.36", "libraries": ["libz.so.1"], "python": "3.9.2"}
NEEDS = {"machine": "x86_64", "glibc_min": "2.34", "libraries": ["libz.so.1"], "carried": []}


def compiled(directory: Path, source: str, *options: str) -> Path:
    """Compile C."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "x.c").write_text(source)
    made = directory / "program"
    subprocess.run(["cc", "-o", str(made), str(directory / "x.c"), *options], check=True)
    return made


def test_an_elf_files_needs_are_those_that_readelf_shows(tmp_path: Path) -> None:
    """Machine, libraries and the newest version of glibc, compared with binutils."""
    program = compiled(
        tmp_path, '#include <stdlib.h>\nint main(void) { return atoi("0"); }\n', "-Wl,--no-as-needed", "-lz", "-lm"
    )
    needs = bench_elf.needs_of(str(program))
    shown = subprocess.run(["readelf", "--wide", "-V", str(program)], check=True, text=True, capture_output=True).stdout
    versions = [word[len("GLIBC_") :] for word in shown.split() if word.startswith("GLIBC_")]
    assert needs["glibc_min"] == max(versions, key=bench_elf.version_key)
    assert needs["libraries"] == ["libz.so.1"]
    assert needs["carried"] == []
    assert (
        needs["machine"] == subprocess.run(["uname", "-m"], check=True, text=True, capture_output=True).stdout.strip()
    )


def test_what_is_no_program_is_told_apart(tmp_path: Path) -> None:
    """A script needs nothing that is known here; a torn file is an error."""
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert bench_elf.needs_of(str(script))["machine"] == ""
    torn = tmp_path / "torn"
    torn.write_bytes(b"\x7fELF\x01\x01")
    with pytest.raises(ValueError, match="not a 64-bit little-endian ELF file"):
        bench_elf.needs_of(str(torn))
    whole = Path("/bin/sh").read_bytes()
    for length in (6, 40, 100, 700, 4000):
        torn.write_bytes(whole[:length])
        with pytest.raises(ValueError):
            bench_elf.needs_of(str(torn))


@pytest.mark.parametrize(
    ("needs", "runtime", "message"),
    [
        (
            {"machine": "aarch64"},
            {},
            "built for aarch64 and the candidate is x86_64. Use a control node of the candidate's kind",
        ),
        (
            {"glibc_min": "2.38"},
            {},
            "needs glibc 2.38 and the candidate has 2.36. Install a newer system there: Debian 11,",
        ),
        (
            {"glibc_min": "2.9"},
            {"glibc": ""},
            "needs glibc 2.9 and the candidate has another C library (musl?). Install a system with glibc there",
        ),
        (
            {"libraries": ["libaio.so.1", "libz.so.1"]},
            {},
            "the candidate lacks libaio.so.1. Build it with make native-portable",
        ),
        (
            {},
            {"python": "3.6.8"},
            "its Python is 3.6.8, and Ansible and the agent need 3.9 or newer. Install one there",
        ),
        ({}, {"python": "2.7.18"}, "its Python is 2.7.18"),
    ],
)
def test_each_obstacle_is_named_with_its_remedy(
    needs: dict[str, object], runtime: dict[str, object], message: str
) -> None:
    """Versions compare as numbers, not as text: 3.10 is newer than 3.9."""
    (obstacle,) = bench_fit.obstacles({"daqwriter": {**NEEDS, **needs}}, {**RUNTIME, **runtime})
    assert obstacle.startswith(("daqwriter: ", "its Python is "))
    assert message in obstacle


def test_what_several_programs_need_is_said_once() -> None:
    """An EL 8: glibc 2.28 and Python 3.6."""
    said = bench_fit.obstacles(
        {"daqwriter": {**NEEDS, "glibc_min": "2.30"}, "hotstore": {**NEEDS, "glibc_min": "2.30"}},
        {**RUNTIME, "glibc": "2.28", "python": "3.6.8"},
    )
    assert [one.partition(":")[0] for one in said] == [
        "daqwriter, hotstore",
        "its Python is 3.6.8, and Ansible and the agent need 3.9 or newer. Install one there, and name it in ansible_python_interpreter",
    ]


def test_a_fitting_program_meets_no_obstacle() -> None:
    """2.9 is older than 2.36; a script meets none either; 3.10 is newer than 3.9."""
    fitting = [{**NEEDS, "glibc_min": "2.9"}, {**NEEDS, "machine": "", "libraries": ["x"]}]
    assert bench_fit.obstacles({str(at): one for at, one in enumerate(fitting)}, {**RUNTIME, "python": "3.10.0"}) == []


def test_the_rule_is_that_of_the_build() -> None:
    """Before they are built, the programs count as needing the glibc that the build aims at."""
    aimed = re.search(
        r"^set\(OLD_GLIBC (\S+)\)", (REPOSITORY / "native-writer/old_glibc.cmake").read_text(), re.MULTILINE
    )
    assert aimed is not None and aimed[1] == bench_fit.unbuilt()["glibc_min"]


def test_what_an_old_python_reads_of_the_bench_is_no_syntax_error_to_it() -> None:
    """EL 8 and SLES 15 have 3.6: what is sent there to ask for its version is read by its own grammar."""
    text = (ANSIBLE / "module_utils/bench_fit.py").read_text()
    ast.parse(text, feature_version=(3, 6))
    assert "from __future__" not in text  # annotations: unknown before 3.7


def test_what_the_system_says_is_parsed() -> None:
    """The input is as ldconfig prints it."""
    assert bench_fit.loader_cache("2 libs found\n\tlibz.so.1 (libc6,x86-64) => /lib/libz.so.1\n") == ["libz.so.1"]
    assert "libc.so.6" in bench_fit.runtime()["libraries"]


SIMULATED = """0 upgraded, 2 newly installed, 0 to remove and 0 not upgraded.
Inst libbench1 (1:9.9-1 localhost [all]) []
Inst fio:amd64 (9.9 localhost [amd64])
Conf libbench1 (1:9.9-1 localhost [all])
"""
INDEX = """Package: libbench1
Version: 1:9.9-1
Description: x
 Package: other
Filename: ./libbench1_1%3a9.9-1_all.deb

Package: libbench1
Version: 9.8
Filename: ./libbench1_9.8_all.deb

Package: fio
Version: 9.9
Filename: ./fio_9.9_amd64.deb
"""


def test_the_files_are_those_of_the_versions_that_apt_chose() -> None:
    """An epoch is escaped in a file's name; an older version in the folder stays there."""
    assert bench_apt_folder.files(SIMULATED, INDEX) == ["./fio_9.9_amd64.deb", "./libbench1_1%3a9.9-1_all.deb"]


def test_a_package_of_the_candidate_that_would_change_is_found() -> None:
    """apt names the version that it replaces in brackets; those of new packages follow the name in parentheses."""
    assert bench_apt_folder.changes(SIMULATED) == []
    text = "Remv exim4 [4.96]\nInst libc6 [2.36-9] (2.41-1 localhost [amd64])\nPurg mdadm [4]\n"
    assert bench_apt_folder.changes(SIMULATED + text) == ["exim4", "libc6", "mdadm"]


def test_apts_own_reason_is_given() -> None:
    """Without its general sentences, and never empty."""
    text = """Reading package lists...
The following packages have unmet dependencies:
 fio : Depends: libc6 (>= 99) but 2.36 is to be installed
       Depends: libaio1 but it is not installable
E: Unable to correct problems, you have held broken packages.
"""
    assert bench_apt_folder.reason(text) == (
        "fio : Depends: libc6 (>= 99) but 2.36 is to be installed Depends: libaio1 but it is not installable"
    )
    assert bench_apt_folder.reason("no such\nfile") == "no such file"


@pytest.mark.parametrize(
    ("text", "seconds"), [("30d", 2592000), ("720h0m0s", 2592000), ("INF", 0), ("0s", 0), ("2w", 1209600)]
)
def test_durations_are_read_as_influxdb_writes_them(text: str, seconds: int) -> None:
    """They are written in the largest unit that fits."""
    assert bench_influxql.duration_s(text) == seconds
    assert bench_influxql.duration_s(bench_influxql.duration_text(seconds)) == seconds


def test_a_duration_that_is_none_is_refused() -> None:
    """The message says what to write instead."""
    for text in ("30 days", "d", "1.5h", ""):
        with pytest.raises(ValueError, match="write a whole number with s, m, h, d or w"):
            bench_influxql.duration_s(text)


def test_names_and_passwords_cannot_leave_their_quotes() -> None:
    """InfluxQL's two kinds of quotes."""
    assert bench_influxql.name_in('a"b\\') == '"a\\"b\\\\"'
    assert bench_influxql.string_in("a'; DROP DATABASE bench --") == "'a\\'; DROP DATABASE bench --'"


class Answering(http.server.BaseHTTPRequestHandler):
    """A server that refuses in each of InfluxDB's ways."""

    def do_POST(self) -> None:
        """Answer with an error and status 200, as InfluxQL does."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        other = self.path.startswith("/other")
        self.wfile.write(b"[]" * 2 if other else b'{"results": [{"error": "retention policy not found"}]}')

    def do_GET(self) -> None:
        """Answer with a reason in JSON."""
        self.send_response(401)
        self.end_headers()
        self.wfile.write(b'{"error": "authorization failed"}')

    def log_message(self, *_arguments: object) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def url() -> Iterator[str]:
    """A server on loopback."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_every_way_of_saying_no_is_an_error(url: str) -> None:
    """Also HTTP 200 with an error inside; the secret is in no message."""
    with pytest.raises(bench_influx.InfluxError, match="retention policy not found"):
        bench_influx.influxql(url, "", "SHOW X")
    with pytest.raises(bench_influx.InfluxError, match="HTTP 401: authorization failed") as refused:
        bench_influx.call(url, "GET", "/x", "Token s3cret")
    assert (refused.value.status, "s3cret" in str(refused.value)) == (401, False)
    with pytest.raises(bench_influx.InfluxError, match="does not answer"):
        bench_influx.call("http://127.0.0.1:1", "GET", "/x")


def test_a_server_that_is_no_influxdb_is_named(url: str) -> None:
    """A proxy's page has status 200 as well."""
    with pytest.raises(
        bench_influx.InfluxError, match=r"other answers as no InfluxDB does: '\[\]\[\]'. Correct influx_url"
    ):
        bench_influx.influxql(f"{url}/other", "", "SHOW X")
