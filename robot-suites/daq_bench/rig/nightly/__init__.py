"""Promise: a night's runs, one after another, each compared with its baseline. Imports run and the rooms below."""
