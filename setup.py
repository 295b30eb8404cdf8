"""Puts the files that no Python package holds into a wheel, as they lie in the checkout, below bench_model/shipped: with them everything
that needs no candidate works from an installed wheel. Parts for the bench alone stay out. pyproject.toml says all the rest."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

SHIPPED = (
    "inventory/*.yml",
    "inventory/devices/**/*.yml",
    "inventory/requirements/*.yml",
    "inventory/scenarios/*.yml",
    "inventory/schemas/*.json",
    "reports/templates/*",
    "robot-suites/suites/*.robot",
    "robot-suites/fio/*.fio",
    "ansible/module_utils/**/*.py",
    "ansible/roles/*/vars/**/*.yml",
)
ROOT = "daq_bench"
# Measure, simulate or try the bench, or need a checkout.
DEVELOPERS = (
    *("audit", "simulation", "samples", "crash_trials", "virtual_candidate", "bench_rounds", "fleet_bench"),
    *("writer_bench", "telemetry_bench", "hot_store_bench", "reporting_bench"),
)


def write_schemas(here):
    """Those of the documents that have types: git does not hold them (pyproject.toml's build-system has what this needs)."""
    argv = [sys.executable, "-m", "daq_bench.bench_model.evidence.schemas", "inventory/schemas"]
    path = os.pathsep.join(["inventory", "agents", *sys.path])  # also that of an isolated build
    if subprocess.run(argv, cwd=here, env={**os.environ, "PYTHONPATH": path}, check=False).returncode != 0:
        raise SystemExit(
            "setup.py: the documents' schemas cannot be made. `make setup` brings what is needed, `make schemas` says why"
        )


class BuildWithFiles(build_py):
    """An editable install reads the checkout itself."""

    def run(self):
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)  # a wheel takes all of it: also what an older build left
            self.packages = [name for name in self.packages if f"{name}.".split(".")[1] not in DEVELOPERS]
        super().run()
        here = Path(__file__).resolve().parent
        if not self.editable_mode:
            write_schemas(here)
        for pattern in () if self.editable_mode else SHIPPED:
            found = [file for file in sorted(here.glob(pattern)) if file.is_file()]
            if not found:
                raise SystemExit(f"setup.py: no file is {pattern}: correct SHIPPED, or complete the checkout")
            for file in found:
                target = Path(self.build_lib, ROOT, "bench_model", "shipped", file.relative_to(here))
                self.mkpath(str(target.parent))
                self.copy_file(str(file), str(target))


class SharedPackage(Distribution):
    """Adds the package whose parts lie in six folders: pyproject.toml can name one folder of a package alone."""

    def parse_config_files(self, *arguments, **options):
        super().parse_config_files(*arguments, **options)
        for name in (one for one in self.packages if one.count(".") == 1):
            self.package_dir.setdefault(name, f"robot-suites/{name.replace('.', '/')}")
        self.packages.append(ROOT)
        self.package_dir[ROOT] = f"inventory/{ROOT}"


setup(cmdclass={"build_py": BuildWithFiles}, distclass=SharedPackage)
