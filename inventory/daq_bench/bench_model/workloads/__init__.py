"""Promise: what a workload's result says follows from the result alone. A module for each workload, or a room where
it takes several. Imports behaviour and the rooms below."""
