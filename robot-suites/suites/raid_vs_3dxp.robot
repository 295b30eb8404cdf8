*** Settings ***
Documentation    One reference drive against RAID sets of others, in paired rounds of alternating order.

Library          RaidVs3dxpKeywords    ${BUNDLE}


*** Test Cases ***
The Sets Are Compared With The Reference In Paired Rounds
    ${comparison}=    Compare The Sets With The Reference
    Every Target Should Have Been Visited In Every Round    ${comparison}
    The Order Should Have Alternated    ${comparison}
