"""Promise: one run from lock to report; whatever happens, the machine is given back. Imports checking and the rooms below."""
