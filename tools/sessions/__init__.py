"""`python -m tools.sessions` runs every command in the documentation's pages on a real cluster."""
