"""Ports for servers that tests start on 127.0.0.1."""

from __future__ import annotations

import socket

_held: list[socket.socket] = []  # until this process ends


def free_ports(count: int) -> list[int]:
    """Ports on 127.0.0.1 that are this process's until it ends: whoever looks for a free port, here or elsewhere, gets another one.

    The sockets stay bound and never listen, so that a connection is refused; a server that sets SO_REUSEADDR, as all of ours do,
    may still listen there. UDP is left free: a number that is held for TCP is given to no second test."""
    ports = []
    for _ in range(count):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", 0))
        _held.append(one)
        ports.append(one.getsockname()[1])
    return ports
