"""Looks at a server that no inventory has yet, and proposes its entry. Promises: nothing is written on the server or in its BMC, and no
proposal consents to the loss of data or to a reboot."""
