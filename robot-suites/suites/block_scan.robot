*** Settings ***
Documentation    Sequential write throughput against block size (DUNE 3D XPoint paper, figure 1).

Library          WorkloadKeywords    ${BUNDLE}    block_scan


*** Test Cases ***
The Block Size Scan Yields A Curve
    ${scan}=    Scan Block Sizes
    Every Block Size Should Have Been Measured    ${scan}
    Every Large Block Size Should Have Been Repeated    ${scan}
    At Least Half Of The Points Should Be Admissible    ${scan}
