#!/usr/bin/python
"""Bring an InfluxDB server of 1.x or 2.x to a wanted state."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_influx_server
short_description: Bring what an InfluxDB server keeps, and who may read and write it, to a wanted state
description:
  - On a server of 1.x, creates the first administrator, the database with its retention policies and continuous queries, and users
    with exactly the given privilege on that database and none elsewhere.
  - Sets a new server of 2.x up; there creates a bucket for points as they come, one for values of one a minute with the task
    that fills it, and one for the history, maps them for InfluxQL (DBRP), and makes tokens that may only write to, or only read,
    these buckets. The server makes up the tokens itself. Each is stored on the server's host, in a file that root alone can read.
    A token whose rights or file differ is replaced.
  - Reads back what it wrote. Removes no database, bucket, retention policy, user or data. Other databases and users are left alone.
  - With O(mode=verify), changes nothing and names the differences.
options:
  mode:
    description: Whether to compare only, or to set as well.
    type: str
    choices: [apply, verify]
    default: apply
  major:
    description: The server's major version.
    type: int
    choices: [1, 2]
    required: true
  url:
    description: Where the server listens, such as http://127.0.0.1:8086.
    type: str
    required: true
  wait_s:
    description: How long to wait for the server to answer.
    type: float
    default: 30
  admin_user:
    description: The administrator's name.
    type: str
    required: true
  admin_password:
    description: The administrator's password.
    type: str
    required: true
  admin_token:
    description: With O(major=2), the administrator's token, which a new server is set up with.
    type: str
  organisation:
    description: With O(major=2), the organisation.
    type: str
  database:
    description: The database; in 2.x also the bucket of points as they come.
    type: str
    required: true
  retention:
    description: How long points are kept as they came, such as 30d.
    type: str
    required: true
  downsampled:
    description: The retention policy of values of one a minute, with the continuous query that fills it; in 2.x also their bucket.
    type: str
    required: true
  downsampled_retention:
    description: How long these are kept.
    type: str
    required: true
  downsampled_every:
    description: How often they are made.
    type: str
    required: true
  downsampled_late:
    description: How late points may arrive and still be counted in them.
    type: str
    required: true
  history:
    description: The retention policy of verdicts, runs and events; in 2.x their bucket is called O(database)/O(history).
    type: str
    required: true
  history_retention:
    description: How long the history is kept.
    type: str
    required: true
  writer:
    description: The user who may write to the database, and nothing else; in 2.x the description of the writing token.
    type: str
    required: true
  writer_password:
    description: With O(major=1), that user's password.
    type: str
  reader:
    description: The user who may read the database, and nothing else; in 2.x the description of the reading token.
    type: str
    required: true
  reader_password:
    description: With O(major=1), that user's password.
    type: str
  token_directory:
    description: With O(major=2), the directory on the server's host for the files NAME.token.
    type: path
author:
  - The daq-storage-bench authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Administer the server
  bench_influx_server:
    major: 2
    url: http://127.0.0.1:8086
    admin_user: admin
    admin_password: "{{ vault_admin_password }}"
    admin_token: "{{ vault_admin_token }}"
    organisation: bench
    database: bench
    retention: 30d
    downsampled: bench_1m
    downsampled_retention: INF
    downsampled_every: 30m
    downsampled_late: 1h
    history: history
    history_retention: INF
    writer: daq-bench-writer
    reader: daq-bench-reader
    token_directory: /etc/daq-bench-influxdb
"""

RETURN = r"""
differences:
  description: The differences from the wanted state, one line each; with O(mode=apply) they are put right.
  returned: always
  type: list
  elements: str
version:
  description: The server's version as it states it; empty when it does not run yet.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.bench_influx import administer
from ansible.module_utils.bench_influx_servers.influx1 import Server as Server1
from ansible.module_utils.bench_influx_servers.influx2 import Server as Server2
from ansible.module_utils.bench_influx_storage import OPTIONS

SERVERS = {1: Server1, 2: Server2}


def main() -> None:
    """Run the module."""
    required = {"type": "str", "required": True}
    # Secrets stand at the top: Ansible masks those for certain, nested ones not when they hold a quote.
    secret = {"type": "str", "no_log": True}
    module = AnsibleModule(
        argument_spec={
            "mode": {"type": "str", "choices": ["apply", "verify"], "default": "apply"},
            "major": {"type": "int", "choices": [*SERVERS], "required": True},
            "wait_s": {"type": "float", "default": 30},
            "admin_password": {**required, "no_log": True},
            "organisation": {"type": "str"},
            "token_directory": {"type": "path", "no_log": False},
            **dict.fromkeys(("admin_token", "writer_password", "reader_password"), secret),
            **dict.fromkeys(("url", "admin_user", "writer", "reader", *OPTIONS), required),
        },
        required_if=[
            ("major", 1, ("writer_password", "reader_password")),
            ("major", 2, ("admin_token", "organisation", "token_directory")),
        ],
        supports_check_mode=True,
    )
    administer(module, SERVERS[module.params["major"]](module.params))


if __name__ == "__main__":
    main()
