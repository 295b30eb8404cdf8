"""Whether hosts reach each other's TCP ports, tried before a network is measured: `open_ports.py {own, ports, others, try_s,
listen_s}` as JSON.

Every host runs it at the same time: it listens on its own address and connects to each port of the others. Prints {result: [{address, port,
why}]}, the ports that cannot be reached, or {error}. A listener on a port of its own is one of the network's tools in use, and an error."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

CONNECT_S_MAX = 3.0
THREADS = 64


def reach(address: str, port: int, until_s: float) -> str:
    """Why the port cannot be reached; empty where it can. One that refuses may not listen yet, and is asked again."""
    while True:
        try:
            socket.create_connection((address, port), timeout=CONNECT_S_MAX).close()
            return ""
        except ConnectionRefusedError as error:
            if time.monotonic() > until_s:
                return error.strerror or "refused"
        except OSError as error:
            return error.strerror or str(error)
        time.sleep(0.1)


def answer(server: socket.socket) -> None:
    """Takes connections until the listener is closed."""
    with suppress(OSError):
        while True:
            server.accept()[0].close()


def main(asked: dict[str, Any]) -> dict[str, Any]:
    begin = time.monotonic()
    family = socket.AF_INET6 if ":" in asked["own"] else socket.AF_INET
    with ExitStack() as stack:
        for port in asked["ports"]:
            try:
                server = stack.enter_context(socket.create_server((asked["own"], port), family=family))
            except OSError as error:
                said = f"{asked['own']}, TCP port {port}: {error.strerror}. Correct network.address in the inventory, or free the port"
                return {"error": said}
            stack.callback(server.shutdown, socket.SHUT_RDWR)  # or a thread that waits in accept() keeps the port
            threading.Thread(target=answer, args=(server,), daemon=True).start()
        doors = [(address, port) for address in asked["others"] for port in asked["ports"]]
        with ThreadPoolExecutor(THREADS) as pool:  # a firewall that drops answers not one of them
            whys = list(pool.map(lambda door: reach(door[0], door[1], begin + asked["try_s"]), doors))
        time.sleep(max(0.0, begin + asked["listen_s"] - time.monotonic()))  # the others may have begun later
    return {"result": [{"address": at, "port": port, "why": why} for (at, port), why in zip(doors, whys) if why]}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))), flush=True)
