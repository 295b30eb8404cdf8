"""Promise: a cell that has no value says so. Imports document, reading and base."""
