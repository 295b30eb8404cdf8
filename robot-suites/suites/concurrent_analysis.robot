*** Settings ***
Documentation    Concurrent analysis of ROOT files: workers against storage, one variable or all, with a cold cache.

Library          WorkloadKeywords    ${BUNDLE}    concurrent_analysis


*** Test Cases ***
Every Core Is Fed By The Storage
    ${analysis}=    Analyse Files Concurrently
    Every Number Of Workers Should Have Been Measured In Every Repetition    ${analysis}
    Every Job Should Have Read Its Share    ${analysis}
