"""What is on the wire: typed, tolerant, no I/O."""
