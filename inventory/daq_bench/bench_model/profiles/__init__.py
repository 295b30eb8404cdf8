"""Promise: a user's YAML becomes types, or one complaint that names file, line, field and remedy. Imports base."""
