"""Promise: what a bundle says, as typed values, or one error that names file and field. Imports base."""
