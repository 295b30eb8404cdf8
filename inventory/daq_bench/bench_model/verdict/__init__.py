"""Promise: the verdict is a pure function of evidence and requirement profile. Imports evidence and the rooms below."""
