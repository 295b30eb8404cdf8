"""A stand-in for Grafana's package: same paths, user, unit and the few answers that the role asks for.

There is no Grafana package on the machines that run the tests. The stand-in proves the role's own work: files, owners, modes,
order, idempotence, messages. It does not prove that the real Grafana takes the provisioned files.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

CONTROL = "Package: grafana\nVersion: 11.0\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\nDepends: python3\n"
POSTINST = """#!/bin/sh
set -e
getent group grafana > /dev/null || groupadd --system grafana
id grafana > /dev/null 2>&1 || useradd --system -g grafana --no-create-home grafana
install -d -o grafana -g grafana /var/lib/grafana
chgrp -R grafana /etc/grafana
"""
UNIT = """[Service]
User=grafana
Group=grafana
ExecStart=/usr/sbin/grafana-server

[Install]
WantedBy=multi-user.target
"""
CLI = """#!/bin/sh
[ "$3 $4 $5" = "admin reset-admin-password --password-from-stdin" ] || exit 2
cat > /var/lib/grafana/password
echo grafana-cli > /var/lib/grafana/set-by
"""
SERVER = """#!/usr/bin/python3
import base64, http.server, json, os, pathlib, re

# As Grafana (conf/defaults.ini; pkg/setting/expanders.go): a variable GF_SECTION_KEY counts where there is such a key, and
# $__file{path} in a value becomes the file's text.
SETTINGS = {
    "GF_SERVER_HTTP_ADDR": "", "GF_SERVER_HTTP_PORT": "3000", "GF_SECURITY_ADMIN_PASSWORD": "admin",
    "GF_AUTH_ANONYMOUS_ENABLED": "false", "GF_USERS_ALLOW_SIGN_UP": "true", "GF_USERS_DEFAULT_THEME": "dark",
    "GF_ANALYTICS_REPORTING_ENABLED": "true", "GF_ANALYTICS_CHECK_FOR_UPDATES": "true",
}
ignored = {name for name in os.environ if name.startswith("GF_")} - set(SETTINGS)
if ignored:
    raise SystemExit(f"Grafana knows no setting {ignored}")
of_file = lambda found: pathlib.Path(found[1]).read_text().strip()
settings = {name: re.sub(r"\\$__file{([^}]+)}", of_file, os.environ.get(name, value)) for name, value in SETTINGS.items()}
STORED = pathlib.Path("/var/lib/grafana/password")
if not STORED.exists():  # the setting counts only when the database is made
    STORED.write_text(settings["GF_SECURITY_ADMIN_PASSWORD"])
SOURCE = pathlib.Path("/etc/grafana/provisioning/datasources/daq-bench.yaml").read_text()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        wanted = "Basic " + base64.b64encode(("admin:" + STORED.read_text()).encode()).decode()
        if self.path != "/api/health" and self.headers.get("Authorization") != wanted:
            return self.answer(401, {"message": "Invalid username or password"})
        self.answer(200, {"url": json.loads(re.search(r"url: (.*)", SOURCE)[1])})

    def answer(self, status, document):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())


address = (settings["GF_SERVER_HTTP_ADDR"], int(settings["GF_SERVER_HTTP_PORT"]))
http.server.HTTPServer(address, Handler).serve_forever()
"""


def build_package(directory: Path) -> Path:
    """Build grafana_11.0_all.deb."""
    tree = directory / "grafana"
    files = {
        "DEBIAN/control": (CONTROL, 0o644),
        "DEBIAN/postinst": (POSTINST, 0o755),
        "usr/sbin/grafana-server": (SERVER, 0o755),
        "usr/sbin/grafana-cli": (CLI, 0o755),
        "lib/systemd/system/grafana-server.service": (UNIT, 0o644),
        "etc/grafana/provisioning/datasources/.keep": ("", 0o644),
        "etc/grafana/provisioning/dashboards/.keep": ("", 0o644),
    }
    for name, (text, mode) in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "--build", str(tree), str(directory)], check=True, capture_output=True
    )
    return directory / "grafana_11.0_all.deb"
