"""The browser that looks at the page of `mpijob-webhook playground`."""
