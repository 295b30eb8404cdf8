*** Settings ***
Documentation    A fresh target written once from begin to end: the rate against bytes written, and where it falls.

Library          WorkloadKeywords    ${BUNDLE}    saturation


*** Test Cases ***
A Fresh Target Is Written Full Once In Each Pass
    ${saturation}=    Write Fresh Target Full
    Every Sample Should Be Accounted For    ${saturation}
    Every Pass Should Be Charged To The Write Budget    ${saturation}
