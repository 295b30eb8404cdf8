*** Settings ***
Documentation    The storage application whose streams are checksummed by several threads (ATLAS transient storage).

Library          WorkloadKeywords    ${BUNDLE}    streams_checksum


*** Test Cases ***
The Multi Threaded Checksum Is Measured Against The Original
    ${application}=    Record Streams With Checksum
    Every Pair Should Have Been Run In Alternating Order    ${application}
    At Least Half Of The Runs Should Count    ${application}
    Every Run That Left Files Should Have Been Read Back    ${application}
