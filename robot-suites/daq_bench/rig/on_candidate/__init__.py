"""Programs that the rig runs on a candidate. Each is one file for Python 3.9 with the standard library alone, since no other package can be
relied on there: it is sent over as text and prints one JSON document (`Machine.call`). Programs that only read lie in `reading`."""
