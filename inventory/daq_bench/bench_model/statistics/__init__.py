"""Promise: every estimate has its interval or says why it has none; nothing here knows the bench. Imports base."""
