"""Promise: each of these programs reads the machine and changes nothing on it. Imports `network`, and of the programs its neighbours."""
