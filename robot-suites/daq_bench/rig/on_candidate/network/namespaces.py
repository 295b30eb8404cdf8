"""Network namespaces behind a bridge, of the programs that have several hosts on one machine.

Names begin with two letters and the program's process number: a later program can tell what one that was killed outright has left."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

SEARCH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
PACKAGES = {"ip": "iproute2", "tc": "iproute2", "rdma": "iproute2", "redis-cli": "redis-tools"}


class NodesError(Exception):
    """A command could not be run; the text becomes {error}."""


def tool(*argv: str, check: bool = True) -> str:
    """Runs a tool and returns its output, in English. Raises NodesError when it is not there, or fails and `check` is set."""
    if shutil.which(argv[0], path=SEARCH) is None:
        raise NodesError(f"{argv[0]} is not there: install {PACKAGES.get(argv[0], argv[0])} on this host")
    environment = {**os.environ, "LC_ALL": "C", "PATH": SEARCH}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)
    if check and done.returncode != 0:
        raise NodesError(f"{' '.join(argv)}: {done.stderr.strip() or done.stdout.strip() or 'failed'}")
    return done.stdout


def rows_of(*argv: str) -> list[dict[str, Any]]:
    """Returns the rows that a tool of iproute2 lists in JSON. Raises NodesError as `tool` does, and for an answer that is no list."""
    told = tool(*argv)
    try:
        rows = json.loads(told or "[]")
    except (ValueError, RecursionError):
        rows = None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise NodesError(
            f"{' '.join(argv)} lists no rows in JSON, but {told[:100]!r}: install iproute2 5 or newer on this host"
        )
    return rows


def inside(namespace: str) -> list[str]:
    """Returns the words before a command that run it in the namespace."""
    return ["ip", "netns", "exec", namespace]


def remove_left_behind(letters: str) -> None:
    """Removes namespaces and links whose program is gone: `letters`, its process number, one more letter and digits."""
    ours = re.compile(rf"{letters}(\d+)[a-z]\d*")
    names = re.findall(r"^(\S+)", tool("ip", "netns", "list", check=False), re.MULTILINE)
    links = re.findall(r"^\d+: ([^:@]+)", tool("ip", "-o", "link"), re.MULTILINE)
    # A namespace and its link may have one name. The kernel removes a link with its namespace only later, so that it is removed too.
    for kind, found in (("netns", names), ("link", links)):
        for name in found:
            match = ours.fullmatch(name)
            if match and not Path(f"/proc/{match[1]}").exists():
                tool("ip", kind, "del", name, check=False)


def add_bridge(name: str) -> None:
    tool("ip", "link", "add", name, "type", "bridge")
    tool("ip", "link", "set", name, "up")


def plug(namespace: str, port: str, bridge: str) -> None:
    """Gives a namespace the port eth0, whose other end is `port` of the bridge."""
    tool("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", namespace)
    tool("ip", "link", "set", port, "master", bridge, "up")


def address(namespace: str, own: str) -> None:
    """Brings eth0 up with the address `own`, of a network of 256."""
    tool("ip", "-n", namespace, "address", "add", f"{own}/24", "dev", "eth0")
    for link in ("eth0", "lo"):
        tool("ip", "-n", namespace, "link", "set", link, "up")
