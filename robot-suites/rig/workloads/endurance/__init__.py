"""The bounded wear experiment."""
