"""Signatures on a bundle, by the real ssh-keygen: who signed, who is trusted, and what is no signature."""

from __future__ import annotations

import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.bundle.provenance import key_of
from daq_bench.rig.checking.signing import Signer, Signing, State, chosen, verified

ENDED = datetime(2026, 1, 31, 12, tzinfo=UTC)


def make_key(folder: Path, name: str, passphrase: str = "") -> Path:
    file = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", name, "-f", str(file)], check=True)
    return file


def listed(key: Path, options: str = "") -> str:
    kind, blob, _ = Path(f"{key}.pub").read_text(encoding="ascii").split(maxsplit=2)
    return f"lab@example.org {options} {kind} {blob}\n"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("lab", "other"):
        make_key(folder, name)
    make_key(folder, "locked", "a passphrase that nobody types")
    return folder


@pytest.fixture
def manifest(tmp_path: Path, keys: Path) -> Path:
    file = tmp_path / "MANIFEST.sha256"
    file.write_text("signed content\n", encoding="utf-8")
    signer = Signer.of(keys / "lab")
    assert signer is not None
    signer.sign(file)
    return file


def signers(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "allowed"
    file.write_text("# the lab's keys\n\n" + text, encoding="utf-8")
    return file


def test_a_trusted_key_is_named_with_its_principal(tmp_path: Path, keys: Path, manifest: Path) -> None:
    found = verified(manifest, signers(tmp_path, listed(keys / "lab", 'namespaces="daq-storage-bench"')), ENDED)
    assert (found.state, found.principal) == (State.TRUSTED, "lab@example.org")
    shown = subprocess.run(
        ["ssh-keygen", "-l", "-f", f"{keys / 'lab'}.pub"], capture_output=True, text=True, check=True
    )
    key = key_of(manifest)
    assert key is not None and key.fingerprint == shown.stdout.split()[1] and key.kind == "ssh-ed25519"
    assert key.fingerprint in found.text


def test_no_signature_an_unknown_key_and_no_list_are_told_apart(tmp_path: Path, keys: Path, manifest: Path) -> None:
    assert verified(manifest, None, ENDED).state is State.UNKNOWN
    found = verified(manifest, signers(tmp_path, listed(keys / "other")), ENDED)
    assert found.state is State.UNKNOWN and "does not list it" in found.text
    Path(f"{manifest}.sig").unlink()
    assert verified(manifest, None, ENDED).state is State.UNSIGNED


@pytest.mark.parametrize("damage", ["content", "signature", "garbage", "empty"])
def test_a_bad_signature_is_bad_whoever_is_trusted(tmp_path: Path, keys: Path, manifest: Path, damage: str) -> None:
    signature = Path(f"{manifest}.sig")
    if damage == "content":
        manifest.write_text("other content\n", encoding="utf-8")
    elif damage == "signature":
        text = signature.read_text(encoding="ascii")
        middle = len(text) - 60
        signature.write_text(
            text[:middle] + ("A" if text[middle] != "A" else "B") + text[middle + 1 :], encoding="ascii"
        )
    else:
        signature.write_text("no signature" if damage == "garbage" else "", encoding="ascii")
    assert verified(manifest, signers(tmp_path, listed(keys / "lab")), ENDED).state is State.BAD


def test_a_signature_for_another_purpose_is_none_for_a_bundle(tmp_path: Path, keys: Path) -> None:
    file = tmp_path / "MANIFEST.sha256"
    file.write_text("signed content\n", encoding="utf-8")
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", str(keys / "lab"), str(file)], check=True)
    assert verified(file, signers(tmp_path, listed(keys / "lab")), ENDED).state is State.BAD


@pytest.mark.parametrize(
    ("options", "state", "words"),
    [
        ('valid-before="20260101"', State.NOT_VALID, "the end of the run"),
        ('valid-after="20270101"', State.NOT_VALID, "the end of the run"),
        ('namespaces="git"', State.NOT_VALID, "not for 'daq-storage-bench'"),
        ('valid-after="20260101",valid-before="20260201"', State.TRUSTED, "ended since"),
        ('valid-after="20260101",valid-before="20990101"', State.TRUSTED, "lab@example.org"),
    ],
)
def test_a_key_counts_where_it_was_valid_at_the_end_of_the_run(
    tmp_path: Path, keys: Path, manifest: Path, options: str, state: State, words: str
) -> None:
    found = verified(manifest, signers(tmp_path, listed(keys / "lab", options)), ENDED)
    assert (found.state, words in found.text) == (state, True), found.text


def test_a_key_with_a_passphrase_is_refused_at_once_and_never_asked_for(
    keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    began = time.monotonic()
    with pytest.raises(RefusedError, match=r"cannot sign with .*locked.*no passphrase"):
        Signer.of(keys / "locked")
    assert time.monotonic() - began < 100


def test_a_key_that_ssh_agent_holds_signs_by_its_public_half(
    tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = tmp_path / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL) as agent:
        try:
            monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
            deadline = time.monotonic() + 10
            while not socket.exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            subprocess.run(["ssh-add", "-q", str(keys / "other")], check=True, capture_output=True)
            public = tmp_path / "other.pub"
            public.write_text(Path(f"{keys / 'other'}.pub").read_text(encoding="ascii"), encoding="ascii")
            signer = Signer.of(public)
            file = tmp_path / "MANIFEST.sha256"
            file.write_text("content\n", encoding="utf-8")
            assert signer is not None
            signer.sign(file)
            assert verified(file, signers(tmp_path, listed(keys / "other")), ENDED).state is State.TRUSTED
        finally:
            agent.terminate()


def test_the_environment_comes_before_the_inventory(tmp_path: Path, keys: Path) -> None:
    told = {"key": str(keys / "lab"), "allowed_signers": "allowed"}
    signers(tmp_path, "")
    assert chosen(told, tmp_path, {}) == Signing((keys / "lab").resolve(), (tmp_path / "allowed").resolve())
    assert chosen(told, tmp_path, {"SIGN_KEY": str(keys / "other")}).key == (keys / "other").resolve()
    assert chosen(None, tmp_path, {}) == Signing()
    away = {"key": "only/on/the/control/node", "allowed_signers": "allowed"}
    assert chosen(away, tmp_path, {}, wanted=("allowed_signers",)).key is None


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"key": "absent"}, r"inventory: bench_signing: 'absent': .* is no file"),
        ({"secret": "x"}, r"unknown key 'secret'. Known: key, allowed_signers"),
        ("key", r"write it as \{key: FILE"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, told: object, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        chosen(told, tmp_path, {})  # type: ignore[arg-type]  # what a user may write
