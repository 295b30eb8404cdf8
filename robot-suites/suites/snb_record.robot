*** Settings ***
Documentation    A DUNE supernova burst is recorded and read back whole (DUNE 3D XPoint paper, section 5).

Library          WorkloadKeywords    ${BUNDLE}    snb_record


*** Test Cases ***
The Supernova Burst Is Recorded And Read Back
    ${record}=    Record Burst
    Every Superchunk Should Be Accounted For    ${record}
    Read Back Should Cover The Whole Record    ${record}
