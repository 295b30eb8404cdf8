"""Makes the modules, module utilities and filters importable as Ansible would make them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# pytest names this file after its folders, `ansible.tests.conftest`, and so registers our folder as the package
# `ansible`. Drop that, or it hides the real one (a namespace package has no file).
if getattr(sys.modules.get("ansible"), "__file__", None) is None:
    sys.modules.pop("ansible", None)
import ansible.module_utils

ANSIBLE = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ANSIBLE / name) for name in ("library", "filter_plugins", "tests")]
ansible.module_utils.__path__.append(str(ANSIBLE / "module_utils"))

from bmc_runs import BmcBench, virtual_bmc  # noqa: E402
from playbook_runs import Bench  # noqa: E402  (found through the path set above)

from daq_bench.virtual_candidate.bmc.simulator import Bmc  # noqa: E402
from daq_bench.virtual_candidate.testing import virtual_machine  # noqa: E402

__all__ = ["virtual_machine"]  # a fixture, for pytest to find


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Give a test its own fake kernel tree, directories and inventory."""
    return Bench(tmp_path)


@pytest.fixture(scope="session")
def plugin_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the virtual BMCs of one test run one compiled plug-in."""
    return tmp_path_factory.mktemp("bmc-plugin")


@pytest.fixture
def bmc(tmp_path: Path, plugin_cache: Path, request: pytest.FixtureRequest) -> Iterator[Bmc]:
    """Start a virtual BMC: of Supermicro's kind, or of the vendor given by indirect parametrisation."""
    with virtual_bmc(tmp_path, plugin_cache, getattr(request, "param", "supermicro")) as started:
        yield started


@pytest.fixture
def bmc_bench(tmp_path: Path, bmc: Bmc) -> BmcBench:
    """Give a test a candidate in a directory with a virtual BMC."""
    return BmcBench(tmp_path, bmc)
