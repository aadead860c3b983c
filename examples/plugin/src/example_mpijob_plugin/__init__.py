"""A rule and an injection for mpijob-webhook."""
