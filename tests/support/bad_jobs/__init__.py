"""Bad jobs: jobs of the corpus with one wrong field, in worlds where every rule rejects, and the rules' messages."""
