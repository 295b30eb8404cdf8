"""Promise: a suite of somebody's own runs as every run does, under one lock and the same guards; its bundle says that it qualifies none."""
