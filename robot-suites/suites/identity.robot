*** Settings ***
Documentation    The candidate is the machine that the inventory declares. Nothing is written before this holds.

Library          IdentityKeywords    ${BUNDLE}


*** Test Cases ***
The Candidate Is The Machine That The Inventory Declares
    ${checks}=    Compare Candidate With Inventory
    All Identity Checks Should Hold    ${checks}
