*** Settings ***
Documentation    Latency from intended arrival to durable against offered rate, open loop, up to and beyond saturation.

Library          WorkloadKeywords    ${BUNDLE}    latency_under_load


*** Test Cases ***
Latency Is Known At Every Load
    ${found}=    Measure Latency Under Load
    Every Superchunk Should Be Accounted For    ${found}
    At Least Half Of The Loads Should Have Been Offered    ${found}
