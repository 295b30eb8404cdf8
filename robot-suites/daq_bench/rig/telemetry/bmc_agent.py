"""The candidate's BMC, read over the network from here where the candidate cannot read it itself: a second telemetry agent on the
control node, with a spool of its own in the bundle, so that a candidate that dies takes no reading of its BMC along.

In band is preferred: who reads is settled before the load begins, and only one of the two does."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.line_protocol import points_of
from daq_bench.bench_model.bundle.telemetry_files import BMC, OWN, POINTS_FILE
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.influx import Influx
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.provision import bmc_secret
from daq_bench.rig.telemetry.agent import Agent

IN_BAND, OVER_LAN, REDFISH = "ipmi", "ipmi_lan", "redfish"  # the agent's names of the collectors
INSTANCE = "bmc"
REPORT_S_MAX = 30.0
# The collector reports a missing device at once; one that still reads after this long has a device to read.
SILENCE_S = 5.0
LOOK_EVERY_S = 0.2


def may_read_in_band(candidate: Candidate) -> bool:
    """Says whether the candidate's own agent may use the candidate's IPMI device (bmc.in_band; true when left out)."""
    return bool(candidate.document.get("bmc", {}).get("in_band", True))


def reads_in_band(points: Path, report_s_max: float = REPORT_S_MAX, silence_s: float = SILENCE_S) -> bool:
    """Says whether the candidate's agent, which has just been started, reads the BMC in band, by its spool.

    Raises BenchError when it says nothing in time."""
    deadline = time.monotonic() + report_s_max
    first_s: float | None = None
    while time.monotonic() < deadline:
        reports = [
            point.fields
            for point in (points_of(points, {"telemetry_agent"}) if points.exists() else [])
            if point.tags.get("collector") == IN_BAND
        ]
        if any(fields.get("supported") is False for fields in reports):
            return False
        if any(float(fields.get("duration_s", 0)) > 0 for fields in reports):
            return True
        if reports and first_s is None:
            first_s = time.monotonic()
        if first_s is not None and time.monotonic() - first_s >= silence_s:
            return True
        time.sleep(LOOK_EVERY_S)
    raise BenchError(
        f"the telemetry agent did not say within {report_s_max:g} s whether it can read the candidate's BMC in band; see {points}"
    )


def bmc_agent(
    layout: Layout, candidate: Candidate, bundle: Bundle, influx: Influx, tags: Mapping[str, str]
) -> Agent | None:
    """The agent that reads this candidate's BMC from here, not started yet; None where that is not needed or not possible.

    The choice, and its reason, becomes an event of the run."""
    bmc = candidate.document.get("bmc", {})
    if "address" not in bmc:
        return None
    if not may_read_in_band(candidate):
        why = "bmc.in_band is false"
    elif not reads_in_band(bundle.path / OWN / POINTS_FILE):
        why = "the candidate's own agent finds no IPMI device that it can use"
    else:
        bundle.event("telemetry", "bmc", "the BMC is read in band by the candidate's agent")
        return None
    secret = {**os.environ, **bmc_secret(layout, candidate)}.get(bmc["password_env"])
    if not secret:
        text = f"the environment variable {bmc['password_env']} (bench_candidate.bmc.password_env) is not set on the control node"
        bundle.event("telemetry", "bmc", f"nobody reads the BMC: {why}, and over the network neither: {text}")
        return None
    bundle.event("telemetry", "bmc", f"the BMC is read over the network by the control node: {why}")
    spool = bundle.path / BMC
    spool.mkdir(parents=True, exist_ok=True)
    options = [
        f"--collectors={OVER_LAN},{REDFISH}",
        f"--instance={INSTANCE}",
        f"--ipmi-lan={bmc['address']}",
        f"--ipmi-port={bmc.get('ipmi_port', 623)}",
        f"--ipmi-user={bmc['user']}",
        f"--ipmi-cipher-suite={bmc.get('cipher_suite', 17)}",
        f"--redfish-port={bmc.get('redfish_port', 443)}",
        *([f"--redfish-ca-file={layout.home / bmc['redfish_ca_file']}"] if "redfish_ca_file" in bmc else []),
        *([f"--redfish-fingerprint={bmc['redfish_fingerprint']}"] if "redfish_fingerprint" in bmc else []),
        *([f"--redfish-system={bmc['redfish_system']}"] if "redfish_system" in bmc else []),
        *(["--redfish-insecure"] if bmc.get("insecure") else []),
    ]
    # The password is in the agent's environment, and in no argument.
    environment = {"IPMI_PASSWORD": secret}
    return Agent(layout.agent, bundle, influx, tags, spool=spool, options=options, environment=environment)
