"""The documentation, played: `python -m tools.sessions` types every command of its pages on a real cluster."""
