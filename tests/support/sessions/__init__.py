"""The documentation, played: `python -m tests.support.sessions` types every command of its pages on a real cluster."""
