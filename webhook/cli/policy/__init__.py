"""The commands `policy ...`."""
