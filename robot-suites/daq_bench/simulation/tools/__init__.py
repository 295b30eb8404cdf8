"""Promise: what the tools on a candidate would have written of the modelled server, in their own formats; nothing here judges."""
