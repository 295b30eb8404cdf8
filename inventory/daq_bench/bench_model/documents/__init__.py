"""Promise: each document that the bench itself writes into a bundle is one type here, which gives its writer, its strict reader and its
JSON Schema (`make schemas`). Imports base."""
