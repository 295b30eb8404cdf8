*** Settings ***
Documentation    DAQDB's semantics and load on an embedded store, on Redis and on Redis Cluster.

Library          WorkloadKeywords    ${BUNDLE}    hot_store


*** Test Cases ***
Events Are Put, Claimed And Removed As DAQDB Says
    ${store}=    Put Claim And Remove Events
    Every Value Size Should Have Been Measured    ${store}
    Every Row Of The Matrix Should Be There For Every Engine    ${store}
    Every Deployment Should Have Been Measured    ${store}
