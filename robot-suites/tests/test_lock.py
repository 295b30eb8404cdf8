"""One run at a time: a second one is told who holds the lock, and a dead holder's lock is free."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.rig.candidate.lock import exclusive, lock_path

HOLD = (
    "import time; from daq_bench.rig.candidate.lock import exclusive\n"
    "with exclusive('c', 'a test'): print('held', flush=True); time.sleep(60)"
)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path))


def test_a_second_run_is_refused_with_the_first_ones_process_until_that_is_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True, env=os.environ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RefusedError, match=rf"qualified by process {holder.pid}: a test"), exclusive("c", "me"):
            pytest.fail("the lock was given twice")
        with exclusive("another", "me"):
            pass  # another candidate is free
        holder.kill()
    with exclusive("c", "me"):
        pass


def test_the_lock_is_given_back() -> None:
    for _ in range(2):
        with exclusive("c", "me"):
            pass


def test_another_users_lock_file_still_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who may only read the file (here: nobody, where the tests run as root) holds and waits like its owner."""
    become_nobody = "import os\nif os.geteuid() == 0: os.setuid(65534)\n"
    script = HOLD.replace("with exclusive", become_nobody + "with exclusive", 1)
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to other users
        Path(folder).chmod(0o755)
        monkeypatch.setenv("DAQ_BENCH_LOCK_DIR", folder)
        lock_path("c").write_text("process 1: an earlier run\n", encoding="utf-8")
        lock_path("c").chmod(0o444)
        with subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=os.environ
        ) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(RefusedError, match="is being qualified by"), exclusive("c", "me"):
                pytest.fail("the lock was given twice")
            holder.kill()
