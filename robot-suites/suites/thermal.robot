*** Settings ***
Documentation     The target is written to until its drives throttle, their temperature settles, or time is up.

Library           ThermalKeywords    ${BUNDLE}
Library           HazardKeywords    ${BUNDLE}

Suite Teardown    Release Scheduled Hazards


*** Test Cases ***
The Soak Runs Until The Drives Throttle Or Settle
    ${hazards}=    Hazards Of The Scenario    thermal
    ${thermal}=    Soak Until Throttled Or Settled    ${hazards}
    Soak Should Have Lasted    ${thermal}
    Fan Sweep Should Be Accounted For    ${thermal}
