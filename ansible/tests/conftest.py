"""Makes the modules, module utilities and filters importable as Ansible would make them."""

from __future__ import annotations

import sys
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

from playbook_runs import Bench  # noqa: E402  (found through the path set above)

from virtual_candidate.testing import virtual_machine  # noqa: E402

__all__ = ["virtual_machine"]  # a fixture, for pytest to find


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Give a test its own fake kernel tree, directories and inventory."""
    return Bench(tmp_path)
