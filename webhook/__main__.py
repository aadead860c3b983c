"""`python -m webhook` is the command `mpijob-webhook`."""

from webhook.cli import main

main()
