*** Settings ***
Documentation    Concurrent analysis of ROOT files: workers against storage, one variable or all, with a cold cache.

Library          ConcurrentAnalysisKeywords    ${BUNDLE}


*** Test Cases ***
Every Core Is Fed By The Storage
    ${analysis}=    Analyse With Every Number Of Workers
    Every Number Of Workers Should Have Been Measured In Every Repetition    ${analysis}
    Every Job Should Have Read Its Share    ${analysis}
