"""Promise: one seed is one server and its hazards, which behave the same each time; knows no tool's output and no verdict."""
