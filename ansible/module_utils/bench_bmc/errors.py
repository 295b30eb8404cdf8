"""The parts that every way to a BMC shares: its error, and the source of its password.

Promises: a password is taken from one place that the inventory names, or refused by name; it is never printed.
Python 3.9, standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping


class BmcError(Exception):
    """The BMC cannot be used as asked: the text names address, port, user, cause and remedy, never the password."""


class BmcSilentError(BmcError):
    """The BMC does not answer just now, which may pass."""


def password_of(given: str | None, variable: str | None, environment: Mapping[str, str]) -> str:
    """Return the password: `given` (Ansible Vault) or that of the environment variable; BmcError where neither is."""
    if given:
        return given
    if not variable:
        raise BmcError(
            "bench_candidate.bmc has no password_env: name the environment variable of the control node that holds the"
            " BMC's password, or give bench_bmc_password from Ansible Vault"
        )
    if not environment.get(variable):
        raise BmcError(
            f"the environment variable {variable} (bench_candidate.bmc.password_env) is not set on the control node:"
            f" export {variable}=... before the run, or give bench_bmc_password from Ansible Vault"
        )
    return environment[variable]
