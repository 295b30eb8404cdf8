*** Settings ***
Documentation    The MiniDAQ without inhibit beside synthetic writes, by request size (DUNE 3D XPoint paper, figure 4).

Library          WorkloadKeywords    ${BUNDLE}    minidaq_scan


*** Test Cases ***
The MiniDAQ Keeps Up With Synthetic Writes Without Inhibit
    ${scan}=    Scan Request Sizes Of Minidaq
    Every Request Size Should Have Been Measured    ${scan}
    At Least Half Of The Points Should Be Admissible    ${scan}
