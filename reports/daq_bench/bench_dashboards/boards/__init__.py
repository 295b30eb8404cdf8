"""Promise: each module is one dashboard, or the rows of one. Imports the builder beside this room."""
