"""Jobs of the corpus with one wrong field, submitted with policies in which every rule rejects, and the messages."""
