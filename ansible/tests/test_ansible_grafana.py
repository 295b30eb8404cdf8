"""The grafana role under a real systemd and dpkg, with a stand-in for Grafana itself (fake_grafana says what that leaves open)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_grafana import build_package
from nspawn import container, missing_requirement
from playbook_runs import PlaybookRun, run_playbook

from daq_bench.virtual_candidate.ports import free_ports

pytestmark = pytest.mark.skipif(bool(missing_requirement()), reason=missing_requirement())

DASHBOARDS = Path(__file__).resolve().parents[2] / "reports" / "dashboards"
SECRETS = {
    "BENCH_GRAFANA_ADMIN_PASSWORD": "admin-s3cret'\"$x",
    "BENCH_INFLUXDB_READER_PASSWORD": 'reader-s3cret: #"$HOME\\',
}


def test_grafana_gets_data_source_and_dashboards_and_loses_them_again(tmp_path: Path) -> None:
    """Refusal without secrets, check mode, apply, changed=0, a new password, a dashboard gone, restore; no secret in any output."""
    dashboards = tmp_path / "dashboards"
    variables = {
        "observability_services": ["grafana"],
        "grafana_deb_source": str(build_package(tmp_path)),
        "grafana_port": free_ports(1)[0],
        "grafana_dashboards_source": str(dashboards),
    }
    outputs: list[str] = []
    with container(tmp_path / "host") as host:
        inventory = tmp_path / "inventory.yml"
        inventory.write_text(
            json.dumps({"all": {"children": {"observability": {"hosts": {"server": host.inventory()}}}}})
        )

        def run(action: str, *arguments: str, secrets: dict[str, str] = SECRETS, **more: Any) -> PlaybookRun:
            merged = {**variables, "observability_action": action, **more}
            done = run_playbook("observability.yml", inventory, merged, *arguments, environment=secrets)
            outputs.append(done.output)
            return done

        refused = run("apply", secrets={})
        assert refused.code != 0
        assert (
            "grafana_admin_password is empty. Give it in Ansible Vault, or in the environment variable" in refused.text
        )
        check = run("apply", "--check")
        assert check.code == 0, check.output
        assert host.ssh("dpkg -s grafana").returncode != 0

        first = run("apply", "--diff")
        assert first.code == 0, first.output
        assert f"{dashboards} has no *.json: Grafana gets the data source and no dashboard" in first.text
        # It began with this password: it never answered to admin/admin until somebody set another one.
        assert "grafana-cli" not in host.ssh("cat /var/lib/grafana/set-by; true").stdout
        assert host.ssh("cat /var/lib/grafana/password").stdout == SECRETS["BENCH_GRAFANA_ADMIN_PASSWORD"]

        source = "/etc/grafana/provisioning/datasources/daq-bench.yaml"
        modes = host.ssh(f"stat -c '%a %U:%G' {source} /etc/grafana/daq-bench-admin-password").stdout.splitlines()
        assert modes == ["640 root:grafana"] * 2
        entry = yaml.safe_load(host.ssh(f"cat {source}").stdout)["datasources"][0]
        assert entry["secureJsonData"]["password"].replace("$$", "$") == SECRETS["BENCH_INFLUXDB_READER_PASSWORD"]
        assert (entry["url"], entry["user"], entry["jsonData"]["dbName"]) == (
            "http://127.0.0.1:8086",
            "daq-bench-reader",
            "bench",
        )

        dashboards.mkdir()
        for file in DASHBOARDS.glob("*.json"):
            shutil.copy(file, dashboards)
        (dashboards / "host.json").write_text('{"schemaVersion": 39}')
        (dashboards / "alerting").mkdir()
        shutil.copy(DASHBOARDS / "alerting" / "daq-bench.json", dashboards / "alerting")
        variables["grafana_report_base_url"] = "https://bench.example.org/runs"
        assert run("apply").code == 0
        alerts = "/etc/grafana/provisioning/alerting/daq-bench.json"
        assert host.ssh(f"cat {alerts}").stdout == (DASHBOARDS / "alerting" / "daq-bench.json").read_text(
            encoding="utf-8"
        )
        for file in set(dashboards.glob("*.json")) - {dashboards / "host.json"}:
            there = json.loads(host.ssh(f"cat /etc/grafana/daq-bench-dashboards/{file.name}").stdout)
            sent = file.read_text(encoding="utf-8").replace("/daq-bench-runs", variables["grafana_report_base_url"])
            assert there == json.loads(sent), file.name
        second = run("apply")
        assert (second.code, second.changed) == (0, 0), second.output
        (dashboards / "host.json").unlink()
        (dashboards / "alerting" / "daq-bench.json").unlink()
        changed = {**SECRETS, "BENCH_GRAFANA_ADMIN_PASSWORD": "other-s3cret"}
        third = run("apply", secrets=changed)
        assert third.code == 0, third.output
        assert host.ssh("ls /etc/grafana/daq-bench-dashboards").stdout.split() == sorted(
            file.name for file in DASHBOARDS.glob("*.json")
        )
        assert host.ssh(f"test -e {alerts}").returncode == 1
        wrong = run("verify")
        assert wrong.code != 0
        assert "401: another administrator's password" in wrong.text

        assert "s3cret" not in "".join(outputs) + host.ssh("journalctl --no-pager").stdout
        restored = run("restore")
        assert restored.code == 0, restored.output
        assert host.ssh("find /etc/grafana /etc/systemd/system -name '*daq-bench*'").stdout == ""
        assert host.ssh("systemctl is-active grafana-server").stdout == "inactive\n"
        again = run("restore")
        assert (again.code, again.changed) == (0, 0), again.output
