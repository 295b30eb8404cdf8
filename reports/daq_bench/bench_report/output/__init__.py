"""Promise: a document becomes HTML, PDF and JSON that say the same. Imports document and the rooms below."""
