"""The host's own apt sources, cut down to its distribution: the guest's packages come from there. Pure but for `host_sources`."""

from __future__ import annotations

import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError

# The distribution's kernel package: the ordinary one, since Debian's cloud kernel has neither IPMI nor hwmon.
KERNELS = {"debian": "linux-image-amd64", "ubuntu": "linux-image-generic"}


@dataclass(frozen=True)
class Sources:
    """The facts of the host that mmdebstrap needs: release, sources as text, apt's proxy settings."""

    distribution: str
    codename: str
    sources: str  # deb822
    one_line: str
    options: tuple[str, ...]

    @property
    def kernel(self) -> str:
        return KERNELS[self.distribution]


def host_sources(etc: Path = Path("/etc/apt")) -> Sources:
    """Raises BenchError on another distribution or architecture, and where no source of the distribution itself is found."""
    release = platform.freedesktop_os_release()
    distribution, codename = release.get("ID", ""), release.get("VERSION_CODENAME", "")
    if distribution not in KERNELS or not codename or platform.machine() != "x86_64":
        raise BenchError(
            f"the virtual candidate is built on Debian or Ubuntu on x86_64; this is "
            f"{release.get('PRETTY_NAME', 'another system')} on {platform.machine()}. Run it on such a machine"
        )
    deb822 = "\n".join(select_deb822(text, codename) for text in _texts(etc, "sources.list.d/*.sources"))
    lines = "\n".join(
        select_lines(text, codename) for text in (*_texts(etc, "sources.list"), *_texts(etc, "sources.list.d/*.list"))
    )
    if not (deb822 + lines).strip():
        raise BenchError(f"no source for {codename} in {etc}/sources.list and {etc}/sources.list.d. Enable one")
    dump = subprocess.run(
        ["apt-config", "dump", "--format", '%F "%v";%n', "Acquire"], capture_output=True, text=True, check=True
    )
    return Sources(distribution, codename, deb822.strip() + "\n", lines.strip() + "\n", proxy_options(dump.stdout))


def select_deb822(text: str, codename: str) -> str:
    """The stanzas of a .sources file that belong to the release `codename` itself, for binary packages."""
    chosen = []
    for stanza in re.split(r"\n\s*\n", text):
        lines = [line for line in stanza.splitlines() if line.strip() and not line.startswith("#")]
        fields = {name.lower(): value.split() for name, _, value in (line.partition(":") for line in lines)}
        suites = [suite for suite in fields.get("suites", []) if _is_of(suite, codename)]
        if "deb" in fields.get("types", []) and suites and fields.get("enabled") != ["no"]:
            kept = [
                line for line in lines if line.partition(":")[0].lower() not in ("types", "suites", "architectures")
            ]
            chosen.append("\n".join(["Types: deb", f"Suites: {' '.join(suites)}", *kept, ""]))
    return "\n".join(chosen)


def select_lines(text: str, codename: str) -> str:
    """The same of a file in the one-line form `deb [options] URI suite component...`."""
    pattern = re.compile(r"^deb\s+(?:\[[^]]*\]\s+)?\S+\s+(\S+)")
    found = ((line, pattern.match(line)) for line in text.splitlines())
    return "\n".join(line for line, match in found if match and _is_of(match[1], codename))


def proxy_options(dump: str) -> tuple[str, ...]:
    """apt's proxy settings out of `apt-config dump`."""
    wanted = re.compile(r'^Acquire::(http|https)::.*(Proxy|CA|Verify|Ssl).* ".+";$', re.IGNORECASE)
    return tuple(line for line in dump.splitlines() if wanted.match(line))


def _is_of(suite: str, codename: str) -> bool:
    """True for `bookworm`, `bookworm-updates` and `bookworm-security`; false for a third party's `something-bookworm` and for backports."""
    return suite == codename or (suite.startswith(f"{codename}-") and "backports" not in suite)


def _texts(etc: Path, pattern: str) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(etc.glob(pattern))]
