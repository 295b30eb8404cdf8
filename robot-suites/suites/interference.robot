*** Settings ***
Documentation    A DAQ day: the burst, writers, readers, network traffic and checksums, pair by pair and all together.

Library          WorkloadKeywords    ${BUNDLE}    interference


*** Test Cases ***
Each Activity Is Measured Alone And Beside Each Other
    ${interference}=    Run Each Activity Alone And In Pairs
    Every Pair Should Have Been Run    ${interference}
    At Least Half Of The Cells Should Count    ${interference}
    The Bursts Superchunks Should Be Accounted For    ${interference}
