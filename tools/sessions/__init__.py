"""Runs the commands of documentation pages on a real cluster."""
