*** Settings ***
Documentation    A bounded wear experiment: what may be written is stated, and the drives' own counts do not exceed it.

Library          WorkloadKeywords    ${BUNDLE}    endurance


*** Test Cases ***
The Drives Are Worn Within The Write Budget
    ${endurance}=    Wear Drives Within Write Budget
    The Budget Should Be Used Up To Less Than A Step    ${endurance}
    Every Reserved Byte Should Be Accounted For    ${endurance}
