"""Jobs of the corpus, each with one mistake, and the messages about them under policies in which every rule rejects."""
