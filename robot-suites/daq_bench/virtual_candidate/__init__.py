"""A candidate made of emulated hardware: QEMU, an IPMI BMC and a Redfish service on loopback, with faults on command.

It stands in for a server where none is at hand: roles, agent, workloads and suites reach it exactly as they reach hardware.
Its throughput says nothing of any drive; see docs/virtual-candidate.md."""
