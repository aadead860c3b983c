"""`python -m webhook` is the command `mpijob-webhook`."""

from webhook.cli.main import main

main()
