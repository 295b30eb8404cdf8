"""Promise: a report is a value: sections, tables, figures and every number in them. Imports base and reading."""
