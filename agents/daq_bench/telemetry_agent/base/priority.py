"""Lets the agent's threads run soon after they wake, on a machine whose processors are all busy.

Promise: takes what the system permits and says what that is; no tool that the agent starts inherits it. The threads sleep
nearly all the time, so that what they get before others is less than their cost.
"""

from __future__ import annotations

import os

NICE = -10
NORMAL, RAISED, REAL_TIME = "normal", "nice -10", "round robin"


def raise_own(real_time: bool) -> str:
    """For the calling thread. Returns what it has got: REAL_TIME where asked for and permitted, RAISED, or NORMAL."""
    # With the flag, what this thread starts is back to normal: Linux keeps both per thread, and tools are forked by threads.
    if real_time and _schedule(os.SCHED_RR, os.sched_get_priority_min(os.SCHED_RR)):
        return REAL_TIME
    if not _schedule(os.SCHED_OTHER, 0):
        return NORMAL
    try:
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    except OSError:
        return NORMAL
    return RAISED


def _schedule(policy: int, priority: int) -> bool:
    try:
        os.sched_setscheduler(0, policy | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
    except OSError:
        return False
    return True
