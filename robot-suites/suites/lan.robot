*** Settings ***
Documentation    A 100 Gbit/s LAN: bandwidth, latency, event building, and what each setting contributes.

Library          LanKeywords    ${BUNDLE}


*** Test Cases ***
The Network Carries What Event Building Needs
    ${network}=    Measure The Network
    Every Message Size Should Have Been Measured    ${network}
    Every Pair Of Settings Should Have Both Halves    ${network}
