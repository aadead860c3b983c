"""Building blocks that several rules, injections and optional parts use."""
