"""The LAN (LHCb): transfers, their windows and the tools' own output."""
