"""Promise: the BMC of the virtual candidate (IPMI and Redfish) tells one story: one set of sensors, one power switch."""
