"""Tells what identifies a machine or lets somebody in, in texts of tools: found by names, by forms and wherever the same stands again.

Promise: the same value becomes the same word, also as a page's dump, in base64 and in swapped bytes; a text in which one remains is
refused."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

SECRET_MIN = 4  # characters: a shorter value would be replaced all over the text
DIGITS_MIN = 6  # a shorter number may be a count elsewhere
# Keys of JSON documents, and names before `:` or `=` in texts, whose values identify a machine or let somebody in.
SECRET_NAME = re.compile(
    r"serial|wwn|naa|eui64|nguid|uuid|guid|logical_unit_id|host_?name|cookie|passw|token|secret|credential|asset|"
    r"service_?tag|server_?name|(?:admin|service|server)_?(?:name|phone|other_?info)|"
    r"mac(?:_?addr)?|ip(?:v4|v6)?_?addr|user_?name|(?:local|remote|target)_host|\bhost\b|"
    r"(?:^|[_ ])s/?n$|licen[cs]e_?key|(?:product|private|public|ssh|api)_?key|"
    r"contact_?info|\bowner\b|asset_?owner|postal_?address|\bgid\b|\bsku\b|enclosure_?id",
    re.IGNORECASE,
)
# BIOS options that are named after such a thing but hold no secret; their values (Auto, Enabled) stand all over the BIOS.
NO_SECRET_NAME = re.compile(
    r"serial_?(?:console|port|comm|debug|redirection)|asset_?tag_?protection|password_?status|password_?(?:change|clear)",
    re.IGNORECASE,
)
NO_SECRET = re.compile(
    r"enabled?|disabled?|auto|none|true|false|default|(?:un)?locked|present|n/?a", re.IGNORECASE
)  # nor these values
# Values that identify wherever they stand.
SECRET_VALUE = re.compile(
    r"\b(?:[0-9a-f]{2}[:-]){5,19}[0-9a-f]{2}\b"  # MAC address, long ones too
    r"|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"  # UUID
    r"|\b(?:\d{1,3}\.){3}\d{1,3}\b"
    r"|(?<![\w:])(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}(?![\w:])|(?<![\w:])(?:[0-9a-f]{1,4}:)+(?::[0-9a-f]{1,4})+(?![\w:])"  # IPv6
    r"|(?<![\w.])(?:0x|naa\.|eui\.|wwn-0x)?[35][0-9a-f]{15}(?:[0-9a-f]{16})?\b"  # world-wide names begin with 5 or 3
    r"|\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}\b"
    r"|://[^/\s:@]+:[^/\s@]+@"
    r"|\b(?:[0-9a-f]{4}\.){2}[0-9a-f]{4}\b"  # MAC address as switches write it
    r"|\bip(?:-\d{1,3}){4}\b"  # host name of a cloud
    r"|(?<=\bidentification = )[0-9a-f]{6}\b"  # an IBM Z machine's serial number, in /proc/cpuinfo
    r"|-----BEGIN [A-Z ]+-----.*?(?:-----END [A-Z ]+-----|\Z)|\bssh-[a-z0-9]+ [A-Za-z0-9+/=]{16,}",
    re.IGNORECASE | re.DOTALL,
)
NO_ADDRESS = re.compile(r"0\.0\.0\.0|127\.0\.0\.1|::")  # addresses that everybody has
# One name and value among several of a line: SERIAL="S6PX" WWN=0x5000
INLINE = re.compile(r"""(?<![\w-])([A-Za-z][\w-]*)=(?:"([^"\n]*)"|([^\s",;]+))""")
# A value too short to be looked for everywhere goes at its own place.
SHORT_MEMBER = re.compile(r'("(?:[^"\\]|\\.)*"\s*:\s*)("[^"\\]{1,3}"|\d{1,5})(?=\s*[,}\]])')
SHORT_NAME = re.compile(r"serial|asset|service_?tag|(?:^|_)s/?n$", re.IGNORECASE)
ESCAPED_ALNUM = re.compile(r"(?<!\\)\\u00(3[0-9]|[46][1-9a-f]|5[0-9a]|7[0-9a])", re.IGNORECASE)
HIDDEN_MIN, HIDDEN_MAX = 6, 256  # characters: a shorter value's digits may be a number, a longer one is no name
TEXT_LINE = re.compile(r"^[ \t]{0,80}([A-Za-z][\w /()-]{0,80})[:=]([^\n]*)$", re.MULTILINE)


def secrets_of(text: str) -> list[str]:
    """Everything in a text that identifies or lets in, the longest first."""
    found = {match[0] for match in SECRET_VALUE.finditer(text) if not NO_ADDRESS.fullmatch(match[0])}
    try:
        found |= set(_named(json.loads(text), False))
    except RecursionError:
        raise ValueError("it nests without end") from None
    except ValueError:
        pairs = [(name.strip(), value.strip()) for name, value in TEXT_LINE.findall(text)] + [
            (name, one or other) for name, one, other in INLINE.findall(text)
        ]
        found |= {value for name, value in pairs if SECRET_NAME.search(name) and not NO_SECRET_NAME.search(name)}
    found = {
        one for one in found if len(one) >= (DIGITS_MIN if one.isdigit() else SECRET_MIN) and not REMOVED.fullmatch(one)
    }
    return sorted(found, key=lambda one: (-len(one), one))


REMOVED = re.compile(r"REMOVED-\d+")
HOST_LIKE = re.compile(r"[a-z][a-z0-9-]*", re.IGNORECASE)


def _without_short(match: re.Match[str]) -> str:
    name = match[1].rpartition(":")[0].strip().strip('"')
    value = match[2].strip('"')
    known = (
        not SHORT_NAME.search(name) or NO_SECRET_NAME.search(name) or NO_SECRET.fullmatch(value) or not value.strip()
    )
    return match[0] if known else f'{match[1]}"REMOVED-0"'


def hidden_forms(secret: str) -> list[re.Pattern[str]]:
    """The same value as dumps of pages show it: in hexadecimal, in base64 at any place, with each two bytes swapped (ATA)."""
    if not HIDDEN_MIN <= len(secret) <= HIDDEN_MAX:
        return []
    data = secret.encode()
    forms = [r"[\s:,-]?".join(f"{byte:02x}" for byte in data)]
    swapped = "".join(secret[at : at + 2][::-1] for at in range(0, len(secret), 2))
    texts = [swapped] if swapped != secret else []
    for before in range(3):  # bytes in front shift the alphabet; the outermost characters depend on what stands beside
        coded = base64.b64encode(bytes(before) + data).decode().rstrip("=")
        texts.append(coded[(0, 2, 3)[before] : len(coded) - (1 if (before + len(data)) % 3 else 0)])
    return [re.compile(form, re.IGNORECASE) for form in forms] + [
        re.compile(re.escape(one)) for one in texts if len(one) >= HIDDEN_MIN
    ]


def _named(value: Any, secret: bool) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _named(inner, secret or bool(SECRET_NAME.search(key) and not NO_SECRET_NAME.search(key)))
    elif isinstance(value, list):
        for inner in value:
            yield from _named(inner, secret)
    elif secret and not isinstance(value, bool) and value is not None and not NO_SECRET.fullmatch(str(value)):
        yield str(value)


def redacted(text: str) -> str:
    """The text without them; the same value becomes the same word. Raises ValueError where something remains."""
    text = ESCAPED_ALNUM.sub(lambda match: chr(int(match[1], 16)), text)
    text = SHORT_MEMBER.sub(_without_short, text)
    for number, secret in enumerate(secrets_of(text), start=1):
        word = f"REMOVED-{number}"
        for form in hidden_forms(secret):
            text = form.sub(word, text)
        if secret.isdigit():  # never within another number; in JSON a number becomes a word, and so stays JSON
            text = re.sub(rf"([\[:,]\s*){secret}(?=\s*[,}}\]])", rf'\1"{word}"', text)
            text = re.sub(rf"(?<![\d.]){secret}(?![\d.])", word, text)
        else:
            domain = r"(?:\.[a-z0-9-]+)*\.[a-z]{2,}\b" if HOST_LIKE.fullmatch(secret) else ""
            # As it stands, and as JSON writes it.
            written = "|".join({re.escape(secret), re.escape(json.dumps(secret)[1:-1])})
            text = re.sub(f"(?:{written})(?:{domain})?", word, text, flags=re.IGNORECASE)
    left = secrets_of(text)
    if left:
        raise ValueError(
            f"{len(left)} values that identify a machine cannot be removed, of {len(left[0])} characters and fewer"
        )
    return text
