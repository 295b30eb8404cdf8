"""Puts the files that no Python package holds into a wheel, as they lie in the checkout, below bench_model/shipped: with them everything
that needs no candidate works from an installed wheel. pyproject.toml says all the rest."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHIPPED = (
    "inventory/*.yml",
    "inventory/devices/**/*.yml",
    "inventory/requirements/*.yml",
    "inventory/scenarios/*.yml",
    "inventory/schemas/*.json",
    "reports/templates/*",
    "robot-suites/suites/*.robot",
    "ansible/module_utils/**/*.py",
    "ansible/roles/*/vars/**/*.yml",
)


class BuildWithFiles(build_py):
    """An editable install reads the checkout itself."""

    def run(self):
        super().run()
        here = Path(__file__).resolve().parent
        for pattern in () if self.editable_mode else SHIPPED:
            found = [file for file in sorted(here.glob(pattern)) if file.is_file()]
            if not found:
                raise SystemExit(f"setup.py: no file is {pattern}: correct SHIPPED, or complete the checkout")
            for file in found:
                target = Path(self.build_lib, "daq_bench", "bench_model", "shipped", file.relative_to(here))
                self.mkpath(str(target.parent))
                self.copy_file(str(file), str(target))


setup(cmdclass={"build_py": BuildWithFiles})
