"""Runs a command on the candidate for as long as the bench is there: `supervise.py COMMAND [ARGUMENT ...]`.

The bench holds this program's standard input open. When it closes (the bench ended it, was killed, or the network is gone), the
command's process group is asked to end (SIGINT: tools clean up), then killed. Exits with the command's status, 128 + n for signal n."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

GRACE_S = 15.0  # daqwriter drains for at most 5 s after SIGINT; the rest is margin for a slow disk


def signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def end_when_input_closes(process: subprocess.Popen[bytes]) -> None:
    while os.read(0, 4096):
        pass
    for number, wait_s in ((signal.SIGINT, GRACE_S), (signal.SIGTERM, 2.0)):
        signal_group(process.pid, number)
        try:
            process.wait(wait_s)
            break
        except subprocess.TimeoutExpired:
            continue
    signal_group(process.pid, signal.SIGKILL)


def main(argv: list[str]) -> int:
    try:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        print(f"{argv[0]} cannot be started on the candidate: {error.strerror}", file=sys.stderr)
        return 127
    threading.Thread(target=end_when_input_closes, args=(process,), daemon=True).start()
    status = process.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
