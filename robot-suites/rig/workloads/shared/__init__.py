"""Promise: what several workloads need is here once. Imports candidate and base."""
