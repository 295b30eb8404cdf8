"""The 100 Gbit/s LAN (LHCb)."""
