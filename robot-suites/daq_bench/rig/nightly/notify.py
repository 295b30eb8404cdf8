"""Tells people and their programs about a night: messages to a webhook, and a heartbeat at the end of a night.

An address is a secret, since whoever knows it can write there: it stands in a file that nobody else can read, and messages and warnings
name its host alone. A message that does not arrive is a warning of the night; it changes no outcome and stops nothing."""

from __future__ import annotations

import http.client
import socket
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from daq_bench.bench_model.base.errors import in_words
from daq_bench.bench_model.documents.nights import Job, NightRun, Word
from daq_bench.bench_model.documents.struct import Closed
from daq_bench.bench_model.nights.outcome import READ_FIRST, STATUS, WORST_FIRST, said, shown
from daq_bench.bench_model.profiles.yaml_source import YamlSource
from daq_bench.bench_model.verdict.advice import lines_of
from daq_bench.candidate_kit.bounded_http import bounded_response
from daq_bench.rig.base.bundle import now_utc
from daq_bench.rig.base.terminal import printable_lines

Form = Literal["json", "slack", "mattermost", "teams"]
Event = Literal["night_begun", "outcome_changed", "night_over", "night_missing"]

TIMEOUT_S = 10.0
PAUSES_S = (0.0, 2.0, 8.0)  # before each try
ADDRESS_BYTES_MAX = 4096
TEXT_CHARACTERS_MAX = 3000  # Slack shows 3,000 of a block; a night of a fleet has more to say in its summary
PASSING = 429  # asks to come again later, as 500 and above do
WORDS_ZERO_WIDTH = "\N{ZERO WIDTH SPACE}"


class Message(Closed, frozen=True):
    """The document that a webhook of the form `json` gets. `text` says the same for a person; times are UTC, as in run.json.

    `candidate`, `before`, `now` and `run_id` belong to `outcome_changed`; `exit_status` and `runs` to `night_over`."""

    event: Event
    control_node: str
    night: str
    time_utc: str
    text: str
    candidate: str | None = None
    scenario: str | None = None
    target: str | None = None
    before: Word | None = None
    now: Word | None = None
    run_id: str | None = None
    exit_status: int | None = None
    runs: list[dict[str, str]] = msgspec.field(default_factory=list)


@dataclass(frozen=True)
class Notify:
    """Where a night is told; empty addresses: nowhere."""

    webhook: str = field(default="", repr=False)
    form: Form = "json"
    heartbeat: str = field(default="", repr=False)


NOBODY = Notify()


def load_notify(document: Mapping[str, Any], source: YamlSource, at: tuple[str | int, ...]) -> Notify:
    """The plan's `notify`, with the addresses from their files. Raises ProfileError for one that cannot be used."""
    found = {}
    for key in ("webhook_file", "heartbeat_file"):
        if key in document:
            address, wrong = _address(Path(document[key]).expanduser())
            if wrong:
                raise source.error((*at, key), *wrong)
            found[key.removesuffix("_file")] = address
    return Notify(form=document.get("form", "json"), **found)


def _address(file: Path) -> tuple[str, tuple[str, str] | None]:
    """The address in a file, and what is wrong with it and the remedy."""
    try:
        mode = file.stat().st_mode
        if not stat.S_ISREG(mode):
            return "", (f"{file} is no regular file", "Name a file whose first line is the address")
        if mode & 0o077:
            return "", (f"others can read {file}", f"chmod 600 {file}: whoever knows the address can write there")
        text = file.read_bytes()[:ADDRESS_BYTES_MAX].decode("utf-8", "replace").strip()
    except OSError as error:
        return "", (f"cannot be read: {in_words(error)}", "Write the address into it, and chmod 600")
    wrong = f"{file} holds no address", "Its only line is one address, https://host/..."
    if not text.isascii() or not text.isprintable() or " " in text:
        return "", wrong
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("https", "http") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    return (text, None) if usable else ("", wrong)


class Teller:
    """Sends in the order of the events, beside the night. `end` waits until all is sent or given up."""

    def __init__(self, notify: Notify, say: Callable[[str], None], pauses_s: Sequence[float] = PAUSES_S) -> None:
        self._notify, self._say, self._pauses_s = notify, say, pauses_s
        self._worker = ThreadPoolExecutor(1)

    def tell(self, message: Message) -> None:
        if self._notify.webhook:
            self._worker.submit(
                self._send, f"the message of {message.event}", self._notify.webhook, body(message, self._notify.form)
            )

    def beat(self) -> None:
        """Says that a night ran to its end, whatever it found: who does not hear it in time raises the alarm."""
        if self._notify.heartbeat:
            self._worker.submit(self._send, "the heartbeat", self._notify.heartbeat, None)

    def end(self) -> None:
        self._worker.shutdown()

    def _send(self, what: str, address: str, content: bytes | None) -> None:
        reason = ""
        for pause_s in self._pauses_s:
            time.sleep(pause_s)
            reason, again = _once(address, content)
            if not reason:
                return
            if not again:
                break
        self._pauses_s = self._pauses_s[
            :1
        ]  # a night with a hundred changes does not wait a hundred times for what is gone
        self._say(f"warning: {what} did not reach {urlsplit(address).hostname}: {reason}")


class _Refusing(urllib.request.HTTPRedirectHandler):
    """The address is where it is sent to: who answers with another one gets nothing."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        return None


class _InTime(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """No answer takes longer than the limit, however little each read brings."""

    def do_open(self, http_class: Any, req: urllib.request.Request, **settings: Any) -> http.client.HTTPResponse:
        def connection(*arguments: Any, **more: Any) -> http.client.HTTPConnection:
            made: http.client.HTTPConnection = http_class(*arguments, **more)
            made.response_class = bounded_response(time.monotonic() + TIMEOUT_S)  # type: ignore[assignment]
            return made

        return super().do_open(connection, req, **settings)


_opener = urllib.request.build_opener(_Refusing, _InTime)


def _once(address: str, content: bytes | None) -> tuple[str, bool]:
    """Why a try failed, empty where it did not, and whether another may help."""
    headers = {"User-Agent": "daq-storage-bench"} | (
        {"Content-Type": "application/json"} if content is not None else {}
    )
    request = urllib.request.Request(address, content, headers)
    try:
        with _opener.open(request, timeout=TIMEOUT_S):  # a status of 200 to 299
            return "", False
    except urllib.error.HTTPError as error:
        with error:
            return f"HTTP {error.code}", error.code == PASSING or error.code >= 500
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        return str(reason).replace(address, "the address") or type(error).__name__, True


def body(message: Message, form: Form) -> bytes:
    """The bytes that the receiver of a form takes. `slack`: api.slack.com/messaging/webhooks; `mattermost`: developers.mattermost.com,
    incoming webhooks; `teams`: an Adaptive Card, as a workflow of Microsoft Teams takes it."""
    if form == "json":
        return msgspec.json.encode(message)
    text = shortened(message.text)
    if form == "slack":
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    document: dict[str, Any] = {"text": text}
    if form == "teams":
        card = {
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "type": "AdaptiveCard",
            "version": "1.2",
            "body": [{"type": "TextBlock", "text": text, "wrap": True}],
        }
        content = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
        document = {"type": "message", "attachments": [content]}
    return msgspec.json.encode(document)


def shortened(text: str) -> str:
    """A text made safe for a chat: a candidate's words call nobody (`@all`) and end in good time."""
    quiet = printable_lines(text).replace("@", f"@{WORDS_ZERO_WIDTH}")
    return quiet if len(quiet) <= TEXT_CHARACTERS_MAX else f"{quiet[:TEXT_CHARACTERS_MAX]} ..."


def begun(night: str, jobs: Sequence[str]) -> Message:
    return _message("night_begun", night, f"The night began: {_counted(len(jobs), 'run')}.\n{', '.join(jobs)}")


def changed(night: str, run: NightRun, before: Word) -> Message:
    text = f"{run.job.name}: {shown(before)} became {said(run)}"
    text = "\n".join([f"{text}. {run.reason}" if run.reason else text, *_advice(run)])
    return msgspec.structs.replace(
        _message("outcome_changed", night, text), candidate=run.job.candidate, scenario=run.scenario, target=run.target,
        before=before, now=run.worst, run_id=run.run_id,
    )  # fmt: skip


def over(night: str, runs: Sequence[NightRun], headline: str, status: int, where: Path) -> Message:
    """`where`: the night's folder on the control node."""
    amiss = sorted((run for run in runs if STATUS[run.worst]), key=lambda run: READ_FIRST.index(run.worst))
    told = [line for run in amiss for line in (f"{run.job.name}: {said(run)}. {run.reason}", *_advice(run))]
    text = "\n".join([f"The night is over. {headline}", f"Documents: {where}", *told])
    rows = [
        {
            "run": run.job.name,
            "outcome": run.worst,
            "reason": run.reason,
            "likely_cause": run.likely_cause,
            "next_step": run.next_step,
        }
        for run in runs
    ]
    return msgspec.structs.replace(_message("night_over", night, text), exit_status=status, runs=rows)


def _advice(run: NightRun) -> tuple[str, ...]:
    return lines_of(run.likely_cause, run.next_step) if STATUS[run.worst] else ()


def missing(text: str) -> Message:
    return _message("night_missing", "", text)


def word_before(run: NightRun, words: Mapping[Job, Mapping[str, Word]]) -> Word | None:
    """How the run's job ended before: on its target, or where it came to none, the worst of all; None where nobody knows."""
    known = words.get(run.job, {})
    if run.target:
        return known.get(run.target)
    return min(known.values(), key=WORST_FIRST.index, default=None)


def _message(event: Event, night: str, text: str) -> Message:
    return Message(event, socket.gethostname(), night, now_utc(), text)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
