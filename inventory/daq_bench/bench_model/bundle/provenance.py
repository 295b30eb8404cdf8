"""The seal of a run bundle: two manifests in the form that `sha256sum -c` reads, each with a signature beside it when somebody signed.

`MANIFEST.sha256` covers the evidence. The reports carry its hash on every page, so that they cannot be in it: `REPORTS.sha256`
covers them and, as one line more, the evidence's manifest (docs/adr/0025). A signature is OpenSSH's (PROTOCOL.sshsig)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.files import SPOOL_BYTES_MAX, open_file, plain_file, read_bytes, survey
from daq_bench.bench_model.bundle.telemetry_files import SUMMARY_FILE

NAMESPACE = "daq-storage-bench"  # a signature for anything else, such as a git commit, does not sign a bundle
MANIFEST, REPORTS_MANIFEST = "MANIFEST.sha256", "REPORTS.sha256"
SIGNATURE_SUFFIX = ".sig"
REPORT_DATA = "report-data.json"
REPORTS = ("report.html", "report.pdf", REPORT_DATA)
SEALS = tuple(name + suffix for name in (MANIFEST, REPORTS_MANIFEST) for suffix in ("", SIGNATURE_SUFFIX))
# How far InfluxDB has got with a spool may change after the run, when an outage is made good; it is no evidence.
DELIVERY = ("cursor.json", "replay.json", "rejected.lp", "thinning.journal")
SPOOLS = ("telemetry", "telemetry/bmc")
NO_EVIDENCE = frozenset(
    {"telemetry/verdict-delivered", "telemetry/account-after-replay.json"}
    | {f"{spool}/{name}" for spool in SPOOLS for name in DELIVERY}
)
BULK = ("telemetry/", "results/raw/")
DIGEST_CHARACTERS = 64
SIGNATURE_BYTES_MAX = 1 << 16
ESCAPED = re.compile(r"\\(.)")
SIGNATURE_MAGIC = b"SSHSIG"
BEGIN, END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"


@dataclass(frozen=True)
class SigningKey:
    """The public key that a signature names; whether the signature is good, and whose the key is, is another question."""

    kind: str  # such as ssh-ed25519
    fingerprint: str  # SHA256:..., as `ssh-keygen -l` prints it

    @property
    def text(self) -> str:
        return f"{self.kind} {self.fingerprint}"


def is_evidence(name: str) -> bool:
    return name not in NO_EVIDENCE and name not in REPORTS and name not in SEALS


def manifest_of(bundle: Path, names: list[str]) -> bytes:
    """The manifest of these files of the bundle, in their order."""
    lines = []
    for name in names:
        escaped = name.replace("\\", "\\\\").replace("\n", "\\n")
        mark = "\\" if escaped != name else ""  # as sha256sum marks a name that it had to escape
        lines.append(f"{mark}{digest_in(bundle, name)}  {escaped}\n")
    return "".join(lines).encode("utf-8", "surrogateescape")


def read_manifest(file: Path) -> dict[str, str]:
    """Digest by name. Raises BenchError that names file and line for what is no manifest."""
    found: dict[str, str] = {}
    text = read_bytes(file.parent, file.name).decode("utf-8", "surrogateescape")
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        marked = line.startswith("\\")
        digest, gap, name = line[marked:].partition("  ")
        if len(digest) != DIGEST_CHARACTERS or set(digest) - set("0123456789abcdef") or not gap or not name:
            raise BenchError(f"{file}:{number}: {line[:80]!r} is no line of `sha256sum`. The bundle is damaged")
        plain = ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], name) if marked else name
        if plain in found:
            raise BenchError(f"{file}:{number}: {plain!r} stands twice. The bundle is damaged")
        found[plain] = digest
    if not text.endswith("\n"):
        raise BenchError(f"{file} is empty or cut short. The bundle is damaged")
    return found


def altered_documents(bundle: Path) -> list[str]:
    """Files that reports on several runs rest on, and that are missing, differ from the manifest or are not in it; empty for a bundle that
    was not sealed.

    The spools and the tools' raw output, which may have gigabytes, are left to `daq-bench check-bundle`. Raises BenchError for a damaged
    manifest."""
    if plain_file(bundle, MANIFEST) is None:
        return []
    listed, found = read_manifest(bundle / MANIFEST), survey(bundle)
    plain = set(found.files)
    altered = [
        name for name in listed if _is_document(name) and (name not in plain or digest_in(bundle, name) != listed[name])
    ]
    added = [name for name in (*found.files, *found.odd) if _is_document(name) and is_evidence(name)]
    return [*altered, *(name for name in added if name not in listed)]


def _is_document(name: str) -> bool:
    """Says whether the verdict and reports on several runs read this file whole."""
    return name not in REPORTS and (not name.startswith(BULK) or name.endswith(f"/{SUMMARY_FILE}"))


def digest_in(bundle: Path, name: str) -> str:
    """SHA-256 of a file of the bundle, in hexadecimal."""
    with open_file(bundle, name, SPOOL_BYTES_MAX) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_of(file: Path) -> str:
    """The same of a file in the bundle's own folder, or of one whose folder was looked at before."""
    return digest_in(file.parent, file.name)


def signing_key(signature: str) -> SigningKey | None:
    """The key that an armoured signature names; None when the text is no such signature."""
    body = signature.strip()
    if not (body.startswith(BEGIN) and body.endswith(END)):
        return None
    try:
        blob = base64.b64decode("".join(body[len(BEGIN) : -len(END)].split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    if not blob.startswith(SIGNATURE_MAGIC):
        return None
    key = _string(blob[len(SIGNATURE_MAGIC) + 4 :])  # behind the version, 4 bytes
    kind = _string(key) if key else None
    if not key or not kind:
        return None
    return SigningKey(kind.decode("ascii", "replace"), fingerprint(key))


def fingerprint(public_key: bytes) -> str:
    """Returns the fingerprint of a public key in SSH's wire format, as `ssh-keygen -l` prints it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(public_key).digest()).decode("ascii").rstrip("=")


def _string(blob: bytes) -> bytes | None:
    """The first string of SSH's wire format: its length in 4 bytes, then itself."""
    length = int.from_bytes(blob[:4], "big")
    return blob[4 : 4 + length] if len(blob) >= 4 + length > 4 else None


def key_of(file: Path) -> SigningKey | None:
    """The key that the signature beside `file` names; None without one."""
    text = signature_of(file)
    return signing_key(text) if text is not None else None


def signature_of(file: Path) -> str | None:
    """The text of the signature beside `file`; None without one."""
    try:
        return read_bytes(file.parent, f"{file.name}{SIGNATURE_SUFFIX}", SIGNATURE_BYTES_MAX).decode("ascii", "replace")
    except FileNotFoundError:
        return None
