*** Settings ***
Documentation     A supernova burst of two seconds, at a fiftieth of one readout unit's load, on this machine.

Library           DaqBench

Suite Setup       Provision Candidate
Suite Teardown    Restore Candidate


*** Test Cases ***
A Short Burst Is Stored And Read Back Whole
    Record Burst    2 s
    No Superchunk Should Be Lost
    Read Back
    Requirement Should Be Met    SNB-03
