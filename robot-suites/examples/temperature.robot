*** Settings ***
Documentation     A drive stays cool while a fresh file of half a GiB is written, and the bench watched all of it.

Library           DaqBench

Suite Setup       Provision Candidate
Suite Teardown    Restore Candidate


*** Test Cases ***
The Drive Stays Cool While It Is Written
    Write    512 MiB
    # A virtual disk has no sensor: on such a machine the test is skipped. On a server leave `without_sensor` out.
    Drive Temperature Should Stay Below    70 degC    without_sensor=SKIP

What Was Written Reads Back Without A Gap In The Telemetry
    Read Back
    Telemetry Should Have No Gap
