"""The commands `mpijob-webhook policy ...`. `commands` is their group."""
