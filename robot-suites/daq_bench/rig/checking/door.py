"""The door through which readers of several runs take them: what `daq-bench check-bundle` says of each, without the reports' numbers.

Promise: nothing of it comes from a bundle's own claims. `history_index` keeps what follows from the evidence alone until a file of the
bundle or the bench's code changes; signatures and profiles until the reader's trust, the manifest or its signature does."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path

from daq_bench import rig
from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.bench_model.bundle.bundle_state import State as FilesState
from daq_bench.bench_model.bundle.files import read_bytes
from daq_bench.bench_model.bundle.provenance import MANIFEST, signature_of
from daq_bench.bench_model.documents.admission import Admission, Worth
from daq_bench.bench_model.nights.history_index import Kind, kept_as_told, read_kept
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.terminal import printable
from daq_bench.rig.checking.check_bundle import check_evidence
from daq_bench.rig.checking.own_profiles import KINDS, Own, compared
from daq_bench.rig.checking.signing import State, verified

WORTH: dict[State, Worth] = {
    State.UNSIGNED: "unsigned",
    State.TRUSTED: "trusted",
    State.UNKNOWN: "unknown",
    State.NOT_VALID: "not valid",
    State.BAD: "bad",
}


@dataclass(frozen=True)
class Trust:
    """Things that the reader brings: the file of the keys that it trusts, and its own profiles."""

    allowed_signers: Path | None = None
    own: Own = field(default_factory=Own)

    @property
    def digest(self) -> bytes:
        """Changes with any file that the answer follows from."""
        folders = [self.own.inventory / folder for folder in KINDS.values()]
        files = [self.allowed_signers, self.own.scenario, self.own.requirement, self.own.inventory / "metrics.yml"]
        files += [file for folder in folders if folder.is_dir() for file in sorted(folder.iterdir()) if file.is_file()]
        hashed = hashlib.sha256()
        for file in files:
            content = b"none" if file is None or not file.is_file() else hashlib.sha256(file.read_bytes()).digest()
            hashed.update(f"{file}\0".encode("utf-8", "surrogateescape") + content)
        return hashed.digest()


@dataclass(frozen=True)
class Followed:
    """Conclusions from a bundle's evidence."""

    folder: str
    problems: list[str]
    notes: list[str]


@dataclass(frozen=True)
class Vouched:
    """Who vouches for a bundle, and in what it was asked something else than the reader would."""

    folder: str
    signature: Worth
    different: list[str]
    problems: list[str]


def admit(bundles: Sequence[Path], trust: Trust) -> list[Admission]:
    """Returns what the door says of each, in their order. A folder that is no readable bundle has a problem that says so."""
    evidence, who = _kinds(trust)
    found: list[Admission] = []
    for folder, own in groupby(bundles, key=lambda path: path.parent):
        some = list(own)
        pairs = zip(some, read_kept(evidence, folder, some), read_kept(who, folder, some), strict=True)
        found += [
            Admission(
                bundle=str(path), signature=by.signature, problems=list(dict.fromkeys((*follows.problems, *by.problems))),
                not_extracted=follows.notes, different=by.different,
            )
            for path, follows, by in pairs
        ]  # fmt: skip
    return found


def _kinds(trust: Trust) -> tuple[Kind[Followed], Kind[Vouched]]:
    code = Path(str(rig.__file__)).parent
    evidence = kept_as_told("door", followed, Followed, package=code)
    reads = partial(vouched, trust)
    return evidence, kept_as_told(
        "trust", reads, Vouched, ["signature"], package=code, state=_seal_of, told=trust.digest
    )


def followed(bundle: Path) -> Followed:
    try:
        check = check_evidence(bundle)
    except (BenchError, OSError) as error:
        return Followed(bundle.name, [_plain(error, bundle)], [])
    return Followed(bundle.name, check.problems, check.notes)


def vouched(trust: Trust, bundle: Path) -> Vouched:
    """Profiles and signature alone: that they are what the manifest lists is the other kind's to say."""
    try:
        run = Bundle.open(bundle).run
        signature = verified(bundle / MANIFEST, trust.allowed_signers, run.finished)
        profiles = compared(bundle, run, trust.own)
    except (BenchError, OSError) as error:
        return Vouched(bundle.name, "unsigned", [], [_plain(error, bundle)])
    except Exception as error:  # a forged document may raise any exception
        return Vouched(bundle.name, "unsigned", [], [f"the profiles: cannot be compared with yours ({error!r:.200})"])
    different = [printable(one.where) for profile in profiles for one in profile.differences]
    problems = [f"{MANIFEST}: {printable(signature.text)}"] if signature.state is State.BAD else []
    return Vouched(bundle.name, WORTH[signature.state], different, problems)


def _plain(error: Exception, bundle: Path) -> str:
    """Documents on runs name no machine's path."""
    return printable(in_words(error).replace(str(bundle), bundle.name))


def _seal_of(bundle: Path) -> FilesState | None:
    """Returns the state of what signature and profiles follow from: the manifest, which lists the profiles, and the signature beside it."""
    try:
        told = read_bytes(bundle, MANIFEST), (signature_of(bundle / MANIFEST) or "").encode()
    except (OSError, BenchError):
        return None
    return FilesState(hashlib.sha256(b"".join(hashlib.sha256(one).digest() for one in told)).hexdigest(), 0)
