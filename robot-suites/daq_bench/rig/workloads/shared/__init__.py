"""Promise: the code that several workloads need is here once. Imports candidate and base."""
