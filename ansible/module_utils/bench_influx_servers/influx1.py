"""Administers an InfluxDB 1.x server: its first administrator, what it keeps for how long, and its users.

Runs on the server's host under its own Python: standard library only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ansible.module_utils.bench_influx import Difference, InfluxError, basic, influxql
from ansible.module_utils.bench_influx_storage import differences, storage_of
from ansible.module_utils.bench_influxql import name_in, string_in

NO_ADMIN_YET = "create admin user first"


class Server:
    """The server as its administrator sees it. `unasked`: what a server without an administrator lacks besides."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        """Keep the wanted state."""
        self.wanted = parameters
        self.url: str = parameters["url"]
        self.database: str = parameters["database"]
        self.admin = basic(parameters["admin_user"], parameters["admin_password"])
        self.unasked = [f"database {self.database}, its policies and users are missing"]

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

    def admin_difference(self) -> list[Difference]:
        """Return the one difference of a server without users."""
        if self.has_admin():
            return []
        name, password = self.wanted["admin_user"], self.wanted["admin_password"]
        create = f"CREATE USER {name_in(name)} WITH PASSWORD {string_in(password)} WITH ALL PRIVILEGES"
        return self.by_statements([(f"administrator {name} is missing", [create])])

    def stages(self) -> list[Callable[[], list[Difference]]]:
        """Return the comparisons, each of which may build on what earlier ones made."""
        return [
            self.admin_difference,
            lambda: self.by_statements(differences(self.ask, storage_of(self.wanted))),
            lambda: self.by_statements(self.user_differences()),
        ]

    def by_statements(self, found: list[tuple[str, list[str]]]) -> list[Difference]:
        """Return differences that their statements put right."""
        return [(text, partial(self.execute, text, statements)) for text, statements in found]

    def user_differences(self) -> list[tuple[str, list[str]]]:
        """Return the differences of users: existence, password, and exactly one privilege."""
        admins = {row["user"]: bool(row["admin"]) for row in self.ask("SHOW USERS")}
        found = []
        for role, privilege in (("writer", "WRITE"), ("reader", "READ")):
            name, password = self.wanted[role], self.wanted[f"{role}_password"]
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

    def execute(self, text: str, statements: list[str]) -> None:
        """Run the statements; an error names the difference, not the statement, which may hold a password."""
        for statement in statements:
            try:
                self.ask(statement)
            except InfluxError as error:
                raise InfluxError(f"{text}, and the server refuses to change it: {error}") from None
