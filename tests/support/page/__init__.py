"""The page of `mpijob-webhook playground`: how it is built, and the browser that looks at it."""
