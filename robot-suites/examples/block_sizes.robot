*** Settings ***
Documentation     Is a large block worth it on this disk? The scan is held against a requirement profile of one's own.

Library           DaqBench

Suite Setup       Provision Candidate    requirement=${CURDIR}/scan-cost.yml
Suite Teardown    Restore Candidate


*** Test Cases ***
The Rate By Block Size Is Known And Costs Little
    ${scan}=    Scan Block Sizes    4 KiB    1 MiB    8 MiB    seconds_per_point=1 s
    Should Be True    ${scan}[points][2][throughput_bytes_per_s] > ${scan}[points][0][throughput_bytes_per_s]
    Requirement Should Be Met    COST-01
