"""A program with the code of Argo CD and Flux that compares a stored object with Git and derives its health."""
