*** Settings ***
Documentation    The target is written to until its drives throttle, their temperature settles, or time is up.

Library          WorkloadKeywords    ${BUNDLE}    thermal


*** Test Cases ***
The Soak Runs Until The Drives Throttle Or Settle
    ${thermal}=    Write Until Drives Throttle Or Settle
    Soak Should Have Lasted    ${thermal}
    Fan Sweep Should Be Accounted For    ${thermal}
