"""Tells what a collection shows of the action of this name, which runs on the control node and needs no module."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_facts
short_description: Write documents of a run into its bundle on the control node
description:
  - Writes each document as JSON into a folder of the control node, in Ansible's own process.
  - Never changed, since the evidence of a run is no change of the candidate. In check mode nothing is written.
options:
  directory:
    description: Absolute path of the folder on the control node; it is made where it is absent.
    type: path
    required: true
  documents:
    description: The documents by file name.
    type: dict
    required: true
author:
  - The daq-storage-bench authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Write the settings into the run's bundle
  bench_facts:
    directory: /srv/runs/20260101T000000Z-snb-01/facts
    documents: {tuning.json: {settings: []}}
"""

RETURN = r"""
written:
  description: The names of the documents.
  returned: always
  type: list
  elements: str
  sample: [tuning.json]
"""
