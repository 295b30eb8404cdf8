"""Promise: the candidate is this machine or one behind SSH, and nothing above can tell which. Imports base."""
