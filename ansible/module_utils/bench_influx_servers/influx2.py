"""Administers an InfluxDB 2.x server: its set-up, buckets, their names for InfluxQL, the task that fills one of them, and tokens.

Runs on the server's host under its own Python: standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from typing import Any

from ansible.module_utils.bench_influx import Difference, InfluxError, call
from ansible.module_utils.bench_influx_storage import storage_of
from ansible.module_utils.bench_influxql import duration_s, duration_text


class Server:
    """The server as its operator sees it."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        """Keep the wanted state."""
        self.wanted = parameters
        self.url: str = parameters["url"]
        self.unasked: list[str] = []
        self.storage = storage_of(parameters)

    def ask(self, method: str, path: str, query: dict[str, str] | None = None, body: Any = None) -> Any:
        """Make a request with the operator's token."""
        try:
            return call(self.url, method, f"/api/v2/{path}", f"Token {self.wanted['admin_token']}", query, body)
        except InfluxError as error:
            if error.status == 401:
                raise InfluxError(
                    "the server refuses the administrator's token: give the one that it was set up with (environment or Vault)"
                ) from None
            raise

    def set_up_difference(self) -> list[Difference]:
        """Return the one difference of a server that nobody has set up."""
        new = call(self.url, "GET", "/api/v2/setup")["allowed"]
        return [("the server is not set up", self.set_up)] if new else []

    def set_up(self) -> None:
        """Create the first user, organisation and bucket."""
        body = {
            "username": self.wanted["admin_user"],
            "password": self.wanted["admin_password"],
            "token": self.wanted["admin_token"],
            "org": self.wanted["organisation"],
            "bucket": self.wanted["database"],
            "retentionPeriodSeconds": duration_s(self.wanted["retention"]),
        }
        call(self.url, "POST", "/api/v2/setup", body=body)

    @cached_property
    def organisation_id(self) -> str:
        """The organisation's id."""
        name = self.wanted["organisation"]
        found = self.ask("GET", "orgs", {"org": name})["orgs"]
        if not found:
            raise InfluxError(f"there is no organisation {name}: correct influxdb_organisation, or create it")
        return str(found[0]["id"])

    def bucket(self, name: str) -> dict[str, Any] | None:
        """Return a bucket by name."""
        try:
            found = self.ask("GET", "buckets", {"orgID": self.organisation_id, "name": name})["buckets"]
        except InfluxError as error:
            if error.status == 404:
                return None
            raise
        return found[0] if found else None

    def bucket_differences(self) -> list[Difference]:
        """Return the differences of buckets and of how long they keep their points."""
        found: list[Difference] = []
        for name, duration in ((one.bucket, one.duration) for one in self.storage.policies()):
            rules = [{"type": "expire", "everySeconds": duration_s(duration)}]
            present = self.bucket(name)
            if present is None:
                body = {"orgID": self.organisation_id, "name": name, "retentionRules": rules}
                found.append((f"bucket {name} is missing", lambda body=body: self.ask("POST", "buckets", body=body)))
                continue
            seconds = sum(rule["everySeconds"] for rule in present["retentionRules"])
            if seconds != duration_s(duration):
                path = f"buckets/{present['id']}"
                found.append(
                    (
                        f"bucket {name} keeps points for {duration_text(seconds)}, not {duration}",
                        lambda path=path, rules=rules: self.ask("PATCH", path, body={"retentionRules": rules}),
                    )
                )
        return found

    def mapping_differences(self) -> list[Difference]:
        """Return the differences of InfluxQL's names for the buckets: a database with three retention policies, the first its default."""
        database = self.wanted["database"]
        listed = self.ask("GET", "dbrps", {"orgID": self.organisation_id, "db": database}).get("content") or []
        present = {one["retention_policy"]: one for one in listed if not one.get("virtual", False)}
        found: list[Difference] = []
        for policy, name, default in ((one.name, one.bucket, one.default) for one in self.storage.policies()):
            bucket, mapping = self.bucket(name), present.get(policy)
            bucket_id = bucket["id"] if bucket else ""
            if mapping and mapping["bucketID"] == bucket_id and mapping["default"] == default:
                continue
            body = {
                "orgID": self.organisation_id,
                "bucketID": bucket_id,
                "database": database,
                "retention_policy": policy,
                "default": default,
            }
            found.append(
                (f"InfluxQL's {database}.{policy} is not bucket {name}", lambda m=mapping, b=body: self.map(m, b))
            )
        return found

    def map(self, old: dict[str, Any] | None, body: dict[str, Any]) -> None:
        """Replace a mapping."""
        if old:
            self.ask("DELETE", f"dbrps/{old['id']}", {"orgID": self.organisation_id})
        self.ask("POST", "dbrps", body=body)

    def task_differences(self) -> list[Difference]:
        """Return the differences of the task that fills the bucket of one value a minute."""
        name = self.wanted["downsampled"]
        flux = self.storage.task(self.wanted["organisation"])
        present = self.ask("GET", "tasks", {"orgID": self.organisation_id, "name": name}).get("tasks") or []
        if not present:
            body = {"orgID": self.organisation_id, "flux": flux}
            return [(f"task {name} is missing", lambda: self.ask("POST", "tasks", body=body))]
        if present[0]["flux"].split() != flux.split():
            path = f"tasks/{present[0]['id']}"
            return [(f"task {name} differs", lambda: self.ask("PATCH", path, body={"flux": flux}))]
        return []

    def token_differences(self) -> list[Difference]:
        """Return the differences of tokens: their rights, and the files that hold them."""
        listed = self.ask("GET", "authorizations", {"orgID": self.organisation_id})["authorizations"]
        raw, minutes, history = (one.bucket for one in self.storage.policies())
        found: list[Difference] = []
        for name, action, buckets in (
            (self.wanted["writer"], "write", [raw, history]),
            (self.wanted["reader"], "read", [raw, minutes, history]),
        ):
            rights = [(action, bucket["id"]) for bucket in map(self.bucket, buckets) if bucket]
            present = [one for one in listed if one["description"] == name and one["status"] == "active"]
            has = [sorted((p["action"], p["resource"].get("id", "")) for p in one["permissions"]) for one in present]
            if has == [sorted(rights)] and os.path.exists(self.token_file(name)):
                continue
            reason = "has other rights" if present and has != [sorted(rights)] else "is missing"
            found.append(
                (f"token {name} {reason}", lambda n=name, a=action, b=buckets, p=present: self.make_token(n, a, b, p))
            )
        return found

    def token_file(self, name: str) -> str:
        """Return the file that a token is stored in."""
        return os.path.join(self.wanted["token_directory"], f"{name}.token")

    def make_token(self, name: str, action: str, buckets: list[str], old: list[dict[str, Any]]) -> None:
        """Create a token, store it, and only then remove those it replaces."""
        permissions = []
        for bucket_name in buckets:
            bucket = self.bucket(bucket_name)
            if bucket is None:
                raise InfluxError(f"there is no bucket {bucket_name}")
            resource = {"type": "buckets", "id": bucket["id"], "orgID": self.organisation_id}
            permissions.append({"action": action, "resource": resource})
        body = {"orgID": self.organisation_id, "description": name, "permissions": permissions}
        token = self.ask("POST", "authorizations", body=body)["token"]
        path = self.token_file(name)
        descriptor = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(token + "\n")
        os.replace(f"{path}.new", path)
        for one in old:
            self.ask("DELETE", f"authorizations/{one['id']}")

    def stages(self) -> list[Callable[[], list[Difference]]]:
        """Return the comparisons, each of which may build on objects that earlier ones made."""
        return [
            self.set_up_difference,
            self.bucket_differences,
            self.mapping_differences,
            self.task_differences,
            self.token_differences,
        ]
