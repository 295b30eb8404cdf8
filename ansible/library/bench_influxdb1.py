#!/usr/bin/python
"""Bring the database, retention policies, continuous queries and users of an InfluxDB 1.x server to a wanted state."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_influxdb1
short_description: Bring the database, retention and users of an InfluxDB 1.x server to a wanted state
description:
  - Creates the first administrator, the database with its retention policies and continuous queries, and users with
    exactly the given privilege on that database and none elsewhere. Reads back what it wrote.
  - Removes no database, no retention policy and no user. Other databases and users are left alone.
  - With O(mode=verify), changes nothing and names the differences.
options:
  mode:
    description: Whether to compare only, or to set as well.
    type: str
    choices: [apply, verify]
    default: apply
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
  database:
    description: The database's name.
    type: str
    required: true
  retention:
    description: How long points are kept as they came, such as 30d.
    type: str
    required: true
  downsampled:
    description: The retention policy of values of one a minute, and the continuous query that fills it.
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
    description: The retention policy of verdicts, runs and events.
    type: str
    required: true
  history_retention:
    description: How long the history is kept.
    type: str
    required: true
  writer_user:
    description: The user who may write to the database, and nothing else.
    type: str
    required: true
  writer_password:
    description: That user's password.
    type: str
    required: true
  reader_user:
    description: The user who may read the database, and nothing else.
    type: str
    required: true
  reader_password:
    description: That user's password.
    type: str
    required: true
author:
  - The daq-storage-bench authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Administer the database
  bench_influxdb1:
    url: http://127.0.0.1:8086
    admin_user: admin
    admin_password: "{{ vault_admin_password }}"
    database: bench
    retention: 30d
    downsampled: bench_1m
    downsampled_retention: INF
    downsampled_every: 30m
    downsampled_late: 1h
    history: history
    history_retention: INF
    writer_user: agent
    writer_password: "{{ vault_writer_password }}"
    reader_user: grafana
    reader_password: "{{ vault_reader_password }}"
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

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.bench_influx import (
    InfluxError,
    administer,
    basic,
    influxql,
)
from ansible.module_utils.bench_influx_storage import (
    OPTIONS,
    Difference,
    differences,
    storage_of,
)
from ansible.module_utils.bench_influxql import name_in, string_in

NO_ADMIN_YET = "create admin user first"


class Server:
    """The server as its administrator sees it, and its differences from the wanted state."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        """Keep the wanted state."""
        self.wanted = parameters
        self.url: str = parameters["url"]
        self.database: str = parameters["database"]
        self.admin = basic(parameters["admin_user"], parameters["admin_password"])

    def ask(self, statement: str) -> list[dict[str, Any]]:
        """Run a statement as the administrator."""
        try:
            return influxql(self.url, self.admin, statement, self.database)
        except InfluxError as error:
            if error.status == 401:
                raise InfluxError(
                    f"the server refuses the password of the administrator {self.wanted['admin_user']}: give the one that it"
                    " was first set up with (environment or Vault), or change it on the server with SET PASSWORD"
                ) from None
            raise

    def has_admin(self) -> bool:
        """Say whether there is an administrator, who must then be ours."""
        try:
            self.ask("SHOW DATABASES")
        except InfluxError as error:
            if NO_ADMIN_YET in str(error):
                return False
            raise
        return True

    def first_admin(self) -> list[Difference]:
        """Return the one difference of a server without users."""
        name, password = self.wanted["admin_user"], self.wanted["admin_password"]
        create = f"CREATE USER {name_in(name)} WITH PASSWORD {string_in(password)} WITH ALL PRIVILEGES"
        return [(f"administrator {name} is missing", [create])]

    def differences(self) -> list[Difference]:
        """Compare; the statements of each difference put it right."""
        return [*differences(self.ask, storage_of(self.wanted)), *self.user_differences()]

    def user_differences(self) -> list[Difference]:
        """Return the differences of users: existence, password, and exactly one privilege."""
        admins = {row["user"]: bool(row["admin"]) for row in self.ask("SHOW USERS")}
        found = []
        for role, privilege in (("writer", "WRITE"), ("reader", "READ")):
            name, password = self.wanted[f"{role}_user"], self.wanted[f"{role}_password"]
            who = name_in(name)
            grant = f"GRANT {privilege} ON {name_in(self.database)} TO {who}"
            if name not in admins:
                create = f"CREATE USER {who} WITH PASSWORD {string_in(password)}"
                found.append((f"user {name} is missing", [create, grant]))
                continue
            if not self.accepts(name, password):
                found.append((f"user {name} has another password", [f"SET PASSWORD FOR {who} = {string_in(password)}"]))
            if admins[name]:
                found.append((f"user {name} is an administrator", [f"REVOKE ALL PRIVILEGES FROM {who}"]))
            rows = self.ask(f"SHOW GRANTS FOR {who}")
            grants = {row["database"]: row["privilege"] for row in rows if row["privilege"] != "NO PRIVILEGES"}
            if grants != {self.database: privilege}:
                has = ", ".join(f"{granted} on {base}" for base, granted in sorted(grants.items())) or "nothing"
                revoke = [f"REVOKE ALL ON {name_in(base)} FROM {who}" for base in sorted(grants)]
                found.append((f"user {name} may {has}, not {privilege} on {self.database} alone", [*revoke, grant]))
        return found

    def accepts(self, name: str, password: str) -> bool:
        """Say whether the server takes a user's password."""
        try:
            influxql(self.url, basic(name, password), "SHOW DATABASES")
        except InfluxError as error:
            if error.status == 401:
                return False
            raise
        return True


def converge(server: Server, change: bool) -> list[str]:
    """Return the differences found; with `change`, also put them right and compare again."""
    lines = []
    if not server.has_admin():
        found = server.first_admin()
        lines += [text for text, _statements in found]
        if not change:
            return [*lines, f"database {server.database}, its policies and users are missing"]
        execute(server, found)
    found = server.differences()
    lines += [text for text, _statements in found]
    if change:
        execute(server, found)
        left = [text for text, _statements in server.differences()]
        if left:
            raise InfluxError(f"the server took every statement, but still: {'; '.join(left)}")
    return lines


def execute(server: Server, differences: list[Difference]) -> None:
    """Run the statements; an error names the difference, not the statement, which may hold a password."""
    for text, statements in differences:
        for statement in statements:
            try:
                server.ask(statement)
            except InfluxError as error:
                raise InfluxError(f"{text}, and the server refuses to change it: {error}") from None


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "mode": {"type": "str", "choices": ["apply", "verify"], "default": "apply"},
            "url": {"type": "str", "required": True},
            "wait_s": {"type": "float", "default": 30},
            "admin_user": {"type": "str", "required": True},
            "admin_password": {"type": "str", "required": True, "no_log": True},
            **{name: {"type": "str", "required": True} for name in OPTIONS},
            # Secrets stand at the top: Ansible masks those for certain, nested ones not when they hold a quote.
            "writer_user": {"type": "str", "required": True},
            "writer_password": {"type": "str", "required": True, "no_log": True},
            "reader_user": {"type": "str", "required": True},
            "reader_password": {"type": "str", "required": True, "no_log": True},
        },
        supports_check_mode=True,
    )
    administer(module, Server(module.params), converge)


if __name__ == "__main__":
    main()
