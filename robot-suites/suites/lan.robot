*** Settings ***
Documentation    A 100 Gbit/s LAN: bandwidth, latency, event building, and what each setting contributes.

Library          WorkloadKeywords    ${BUNDLE}    lan


*** Test Cases ***
The Network Carries What Event Building Needs
    ${network}=    Load Network
    Every Message Size Should Have Been Measured    ${network}
    Every Pair Of Settings Should Have Both Halves    ${network}
