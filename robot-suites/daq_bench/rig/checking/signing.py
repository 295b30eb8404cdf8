"""Signs and verifies manifests with OpenSSH (`ssh-keygen -Y`). The private key is only ever named to ssh-keygen, never read here."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import subprocess
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.base.nearest import nearest
from daq_bench.bench_model.bundle.files import read_bytes
from daq_bench.bench_model.bundle.provenance import (
    NAMESPACE,
    SIGNATURE_SUFFIX,
    SigningKey,
    fingerprint,
    signature_of,
    signing_key,
)
from daq_bench.bench_model.profiles.yaml_source import read_yaml
from daq_bench.rig.base.shell import environment_for_children

KEY_VARIABLE, SIGNERS_VARIABLE = "SIGN_KEY", "ALLOWED_SIGNERS"
INVENTORY_KEY = "bench_signing"  # variable of the candidate, or of a group, in the inventory
INVENTORY_KEYS = ("key", "allowed_signers")
TIMEOUT_S = 30.0  # an agent may ask its user for a confirmation; a nightly run has none
PROBE = b"can this key sign?\n"
KEY_KINDS = ("ssh-", "ecdsa-", "sk-")


class State(Enum):
    """The worth of a signature."""

    UNSIGNED = "unsigned: nobody vouches for it"
    TRUSTED = "signed by a trusted key"
    UNKNOWN = "signed, by a key that nobody here vouches for"
    NOT_VALID = "signed by a listed key that was not valid for it"
    BAD = "the signature is bad"


@dataclass(frozen=True)
class Signature:
    """`principal`: the name that the allowed-signers file has for the key. `detail`: further remarks."""

    state: State
    key: SigningKey | None = None
    principal: str | None = None
    detail: str = ""

    @property
    def text(self) -> str:
        principal = f"as {self.principal}" if self.principal else ""
        key = f"({self.key.text})" if self.key else ""
        by = " ".join(filter(None, (principal, key)))
        return ". ".join(filter(None, (f"{self.state.value} {by}".strip(), self.detail)))


@dataclass(frozen=True)
class Signing:
    """The key that signs, and the file that names the trusted ones; None: nobody named one."""

    key: Path | None = None
    allowed_signers: Path | None = None


def chosen(
    inventory: Mapping[str, Any] | None,
    folder: Path,
    environment: Mapping[str, str] = os.environ,
    wanted: Collection[str] = INVENTORY_KEYS,
) -> Signing:
    """The environment's choice (`make ... SIGN_KEY= ALLOWED_SIGNERS=`), else the inventory's, whose relative paths begin at `folder`.

    Only the `wanted` file has to be there: a verifier needs no key. Raises RefusedError that names the variable or the inventory's key."""
    if inventory is not None and not isinstance(inventory, Mapping):
        raise RefusedError(
            f"inventory: {INVENTORY_KEY} is {inventory!r}; write it as {{key: FILE, allowed_signers: FILE}}"
        )
    told = dict(inventory or {})
    if unknown := [key for key in told if key not in INVENTORY_KEYS]:
        raise RefusedError(
            f"inventory: {INVENTORY_KEY} has the unknown key {unknown[0]!r}. {nearest(str(unknown[0]), INVENTORY_KEYS)}"
        )
    variables = dict(zip(INVENTORY_KEYS, (KEY_VARIABLE, SIGNERS_VARIABLE), strict=True))
    return Signing(**{name: _file(environment, variables[name], told.get(name), folder) for name in wanted})


def of_checker(inventory: Path, wanted: Collection[str]) -> Signing:
    """The same for the checker of a bundle: the environment's choice, else `bench_signing` in `all: vars:` of the checker's own inventory.

    It is read as plain YAML: nothing is templated, and no candidate has to be in it."""
    node = read_yaml(inventory).data if inventory.is_file() else None
    for key in ("all", "vars", INVENTORY_KEY):
        node = node.get(key) if isinstance(node, Mapping) else None
    return chosen(node, inventory.parent, wanted=wanted)


def _file(environment: Mapping[str, str], variable: str, told: object, folder: Path) -> Path | None:
    asked = environment.get(variable)
    if not asked and not told:
        return None
    path = Path(asked).expanduser() if asked else folder / Path(str(told)).expanduser()
    if not path.is_file():
        where = f"{variable}={asked}" if asked else f"inventory: {INVENTORY_KEY}: {told!r}"
        raise RefusedError(f"{where}: {path} is no file. Name one that is, or leave it out")
    return path.resolve()


@dataclass(frozen=True)
class Signer:
    """A key that has just shown that it can sign."""

    file: Path
    key: SigningKey

    @staticmethod
    def of(file: Path | None) -> Signer | None:
        """None without a key. Raises RefusedError for one that cannot sign unattended."""
        if file is None:
            return None
        key = signing_key(_signature(file, PROBE))
        if key is None:
            raise RefusedError(f"{KEY_VARIABLE}: ssh-keygen made no signature of OpenSSH's form with {file}")
        return Signer(file, key)

    def sign(self, manifest: Path) -> Path:
        """Writes the signature beside `manifest`. Raises RefusedError when the key does not sign any more."""
        made = _signature(self.file, manifest.read_bytes())
        target = Path(f"{manifest}{SIGNATURE_SUFFIX}")
        target.write_text(made, encoding="ascii")
        return target


def _signature(key: Path, content: bytes) -> str:
    done = _keygen(["sign", "-q", "-f", key], content)
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it printed nothing"]
        raise RefusedError(
            f"{KEY_VARIABLE}: ssh-keygen cannot sign with {key} ({said[-1].strip()}). A key for unattended runs has no passphrase, or "
            f"is held by ssh-agent without confirmation and named by its public half"
        )
    return done.stdout.decode("ascii")


def _keygen(words: list[str | Path], content: bytes) -> subprocess.CompletedProcess[bytes]:
    """`ssh-keygen -Y ...` in a session of its own, without a terminal or window where it could ask for a passphrase."""
    argv = ["ssh-keygen", "-Y", str(words[0]), "-n", NAMESPACE, *(str(word) for word in words[1:])]
    environment = {**environment_for_children(), "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C", "TZ": "UTC"}
    try:
        return subprocess.run(
            argv,
            input=content,
            capture_output=True,
            timeout=TIMEOUT_S,
            env=environment,
            start_new_session=True,
            check=False,
        )
    except FileNotFoundError:
        raise RefusedError(
            "ssh-keygen is not there (Debian package openssh-client); nothing can be signed or verified"
        ) from None
    except subprocess.TimeoutExpired:
        raise RefusedError(
            f"ssh-keygen did not end within {TIMEOUT_S:.0f} s: does an agent wait for a confirmation that nobody gives?"
        ) from None


def verified(manifest: Path, allowed_signers: Path | None, when: datetime | None) -> Signature:
    """Returns the worth of the signature beside `manifest`. `when`: the run's end, at which the key has to be valid."""
    text = signature_of(manifest)
    if text is None:
        return Signature(State.UNSIGNED)
    key = signing_key(text)
    if key is None:
        return Signature(State.BAD, detail=f"{manifest.name}{SIGNATURE_SUFFIX} holds no SSH signature")
    content = read_bytes(manifest.parent, manifest.name)
    with tempfile.TemporaryDirectory(prefix="daq-bench-signature-") as folder:
        file = Path(folder, "signature")  # ssh-keygen is never given a path into a bundle
        file.write_text(text, encoding="ascii", errors="replace")
        if _keygen(["check-novalidate", "-s", file], content).returncode != 0:
            detail = f"it was not made for this {manifest.name}, or not for {NAMESPACE!r}"
            return Signature(State.BAD, key, detail=detail)
        if allowed_signers is None:
            return Signature(State.UNKNOWN, key, detail=f"name the trusted keys with {SIGNERS_VARIABLE}=")
        return _by_whom(file, content, key, allowed_signers, when)


def _by_whom(file: Path, content: bytes, key: SigningKey, signers: Path, when: datetime | None) -> Signature:
    """Checks, for a good signature, whether its key is trusted and was so at the run's end."""
    stamp = (when or datetime.now(UTC)).astimezone(UTC).strftime("%Y%m%d%H%M%S")
    at = ["-O", f"verify-time={stamp}"]
    for principal in _principals(file, signers, at):
        if _keygen(["verify", "-f", signers, "-I", principal, "-s", file, *at], content).returncode == 0:
            now = _principals(file, signers, [])
            ended = "" if principal in now else "The key's validity has ended since"
            return Signature(State.TRUSTED, key, principal, ended)
    if key.fingerprint in _fingerprints(signers):
        detail = f"{signers} lists the key, but not for {NAMESPACE!r} or not for {stamp} UTC, the end of the run"
        return Signature(State.NOT_VALID, key, detail=detail)
    return Signature(State.UNKNOWN, key, detail=f"{signers} does not list it")


def _principals(file: Path, signers: Path, at: list[str]) -> list[str]:
    done = _keygen(["find-principals", "-s", file, "-f", signers, *at], b"")
    return done.stdout.decode("utf-8", "replace").split() if done.returncode == 0 else []


def _fingerprints(signers: Path) -> set[str]:
    """Returns the fingerprint of every key in an allowed-signers file, whatever its options; comments and empty lines hold none."""
    found = set()
    for line in signers.read_text(encoding="utf-8", errors="replace").splitlines():
        words = line.split()
        for kind, blob in pairwise(words):
            if kind.startswith(KEY_KINDS) and not line.startswith("#"):
                with contextlib.suppress(binascii.Error, ValueError):
                    found.add(fingerprint(base64.b64decode(blob, validate=True)))
    return found
