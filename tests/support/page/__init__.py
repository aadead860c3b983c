"""The browser that opens the page of `mpijob-webhook playground`."""
