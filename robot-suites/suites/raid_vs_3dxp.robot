*** Settings ***
Documentation    One reference drive against RAID sets of others, in paired rounds of alternating order.

Library          WorkloadKeywords    ${BUNDLE}    raid_vs_3dxp


*** Test Cases ***
The Sets Are Compared With The Reference In Paired Rounds
    ${comparison}=    Compare Sets With Reference
    Every Target Should Have Been Visited In Every Round    ${comparison}
    The Order Should Have Alternated    ${comparison}
