"""The code of Argo CD and Flux that judges a stored object, as a program."""
