"""Reads what a machine offers to the bench's programs: {machine, glibc, python, libraries}. Reads only; runs on Python 3.6 too."""

import json
import subprocess

from ansible.module_utils.bench_fit import runtime

if __name__ == "__main__":
    try:
        print(json.dumps({"result": runtime()}))
    except (OSError, subprocess.SubprocessError) as error:
        print(json.dumps({"error": f"the loader's list of its libraries cannot be read: {error}"}))
