"""Jobs of tests/corpus with one mistake each, and the messages about these jobs if every rule rejects."""
