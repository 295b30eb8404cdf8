"""Promise: a hole, a null, a contradiction or a stale fact in the evidence is found before anything is judged, and
never helps a candidate. Imports workloads and the rooms below."""
