*** Settings ***
Documentation    Sequential write throughput against threads and block size (DUNE 3D XPoint paper, figure 2).

Library          WorkloadKeywords    ${BUNDLE}    thread_scan


*** Test Cases ***
The Thread Scan Yields A Family Of Curves
    ${scan}=    Scan Numbers Of Threads
    Every Number Of Threads Should Have Been Measured    ${scan}
    At Least Half Of The Points Should Be Admissible    ${scan}
