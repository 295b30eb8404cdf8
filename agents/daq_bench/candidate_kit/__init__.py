"""Promise: what is read on a candidate means the same to all who read it: the agent, the candidate programs and bench_model.

It travels with each of them; Python 3.9, standard library only. Imports nothing of ours."""
