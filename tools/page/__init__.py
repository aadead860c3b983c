"""Builds the page of `mpijob-webhook playground`."""
