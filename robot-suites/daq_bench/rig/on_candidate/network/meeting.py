"""Lets the hosts of one transfer begin at the same moment: each has a TCP connection to node0, over the network that is measured."""

from __future__ import annotations

import contextlib
import socket
import time

from daq_bench.rig.on_candidate.network.namespaces import NodesError

PORT = 5300
S_MAX = 45.0  # a port whose rings or MTU were changed may take seconds to come up again
NOT_MET = "the nodes did not meet:"  # another node's own error says more


def meet(node: str, addresses: dict[str, str]) -> None:
    """Returns at the same moment on all hosts: each tells node0 that it is ready, and is told when all are. Raises NodesError."""
    deadline = time.monotonic() + S_MAX
    where = (addresses["node0"], PORT)
    if node == "node0":
        _gather(where, set(addresses) - {"node0"}, deadline)
        return
    with _reach(where, deadline) as link:
        link.sendall(f"{node}\n".encode())
        link.settimeout(max(0.1, deadline - time.monotonic()))
        try:
            said = link.recv(16)
        except OSError as error:
            raise NodesError(f"{NOT_MET} node0 did not say when to begin: {error}") from None
        if said != b"go\n":
            raise NodesError(f"{NOT_MET} node0 ended before the transfer")


def _gather(where: tuple[str, int], others: set[str], deadline: float) -> None:
    family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(socket.create_server(where, family=family))
        except OSError as error:
            raise NodesError(
                f"{where[0]}, TCP port {where[1]}: {error.strerror}. Correct network.address in the inventory, or free the port"
            ) from None
        links: dict[str, socket.socket] = {}
        while set(links) != others:
            try:
                server.settimeout(max(0.1, deadline - time.monotonic()))
                link = stack.enter_context(server.accept()[0])
                link.settimeout(2.0)
                with contextlib.suppress(OSError):  # a stranger who says nothing, or hangs up
                    name = link.recv(64).decode("ascii", "replace").strip()
                    if name in others:
                        links[name] = link
            except (TimeoutError, socket.timeout):
                late = ", ".join(sorted(others - set(links)))
                raise NodesError(f"{NOT_MET} {late} was not ready within {S_MAX:g} s") from None
        for name in sorted(others):
            links[name].sendall(b"go\n")


def _reach(where: tuple[str, int], deadline: float) -> socket.socket:
    while True:
        try:
            return socket.create_connection(where, timeout=2.0)
        except OSError as error:
            if time.monotonic() > deadline:
                raise NodesError(
                    f"{NOT_MET} node0 ({where[0]}, TCP port {where[1]}) cannot be reached over the data network: {error}. Open the port"
                ) from None
            time.sleep(0.05)
