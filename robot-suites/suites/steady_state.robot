*** Settings ***
Documentation    Throughput, operations per second and latency in steady state (SNIA SSS PTS 2.0.2),
...              and under the JESD219 enterprise mix.

Library          WorkloadKeywords    ${BUNDLE}    steady_state


*** Test Cases ***
The Drive Is Purged, Preconditioned And Watched Until It Is Steady
    ${result}=    Write Until Drive Is Steady
    Every Test Should Have Been Preconditioned    ${result}
    Every Round Should Have All Of Its Points    ${result}
    Tests That Are Not Steady Should Say Why    ${result}
