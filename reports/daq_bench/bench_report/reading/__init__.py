"""Promise: a bundle's content as typed values, or one error that names file and field. Imports base."""
