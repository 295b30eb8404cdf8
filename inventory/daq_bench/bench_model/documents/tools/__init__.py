"""Types of the documents that this project's programs write in other languages, or on a candidate; their JSON Schemas come from here."""
