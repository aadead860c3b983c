"""What `mpijob-webhook policy` does: `commands` parses, calls and prints; each command's work is a module beside it."""
