"""Looks whether the last night began in time and ended: a night that never began can tell nobody."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from daq_bench.bench_model.documents.struct import moment
from daq_bench.rig.nightly.housekeeping import night_runs
from daq_bench.rig.nightly.night import stored_nights
from daq_bench.rig.nightly.notify import Notify, Teller, missing

AHEAD = timedelta(minutes=2)  # [P] a night that began later than now, by more, is one of a clock that jumped


def overdue(nights: Path, hours: float, say: Callable[[str], None]) -> str:
    """Why somebody has to look, and where; empty where the newest night began within `hours` and runs or has ended."""
    now = datetime.now(UTC)
    known = [(moment(night.started_utc), night) for night in stored_nights(nights, say)]
    past = [one for one in known if one[0] <= now + AHEAD]
    if not past:
        return f"no night has begun that {nights} knows of. Look at the timer: systemctl status daq-bench-nightly.timer"
    began, night = max(past, key=lambda one: one[0])
    since_h = (now - began).total_seconds() / 3600
    if since_h > hours:
        return (
            f"no night has begun for {since_h:.0f} h; the last one, {night.nightly}, began {night.started_utc}. Look at the timer and "
            "at the service: systemctl status daq-bench-nightly.timer daq-bench-nightly.service"
        )
    if night.state == "running" and not night_runs(nights / night.nightly):
        return (
            f"{night.nightly} began {night.started_utc} and was killed: nothing runs and it has not ended. "
            f"Go on with it: daq-bench nightly --resume {nights / night.nightly}"
        )
    return ""


def tell_overdue(nights: Path, hours: float, notify: Notify, say: Callable[[str], None]) -> bool:
    """Says it here and to the webhook. Returns whether a night is missing."""
    reason = overdue(nights, hours, say)
    if reason:
        say(f"night missing: {reason}")
        teller = Teller(notify, say)
        teller.tell(missing(f"Night missing: {reason}"))
        teller.end()
    return bool(reason)
