"""Bad jobs: those of the corpus with one field wrong, where each rule rejects, and what the rules say of them."""
