"""A remedy names what its reader can type: options of `daq-bench`, or variables where make called it. Texts that outlive the call, such as
a report's, name options."""

from __future__ import annotations

import os

BY_MAKE = "DAQ_BENCH_BY_MAKE"  # set by the Makefile alone
OTHER_NAMES = {"--output": "OUT", "--own-scenario": "SCENARIO", "--own-requirement": "REQUIREMENT"}
RUN_ID = "runs/<run-id>"


def by_make() -> bool:
    return BY_MAKE in os.environ


def variable(option: str) -> str:
    """make's name of an option: `TIME_LIMIT_H` for `--time-limit-h`."""
    return OTHER_NAMES.get(option, option.lstrip("-").upper().replace("-", "_"))


def typed(option: str, value: object = None) -> str:
    """`--scale 0.1`, or `SCALE=0.1` for whoever called make; without a value the name alone, and 1 stands for True."""
    if by_make():
        return f"{variable(option)}={'' if value is None else 1 if value is True else value}"
    return in_words(option, value)


def in_words(option: str, value: object = None) -> str:
    """`--scale 0.1`, also for whoever called make; without a value, or with True, the name alone."""
    return option if value is None or value is True else f"{option} {value}"


def a_run() -> str:
    """How a bundle is named to a command that reads one."""
    return f"RUN={RUN_ID}" if by_make() else RUN_ID
