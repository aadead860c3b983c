"""The page of `mpijob-webhook playground`: how it is built."""
