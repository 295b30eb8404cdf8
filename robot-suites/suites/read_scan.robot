*** Settings ***
Documentation    Sequential and random read throughput against block size, depth and jobs.

Library          WorkloadKeywords    ${BUNDLE}    read_scan


*** Test Cases ***
The Read Scan Yields Rates Of Sequential And Random Reads
    ${scan}=    Scan Reads
    Every Point Should Have Been Measured    ${scan}
    At Least Half Of The Points Should Be Admissible    ${scan}
