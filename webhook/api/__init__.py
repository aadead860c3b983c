"""The objects that the webhook reads and writes: MPIJobs, pod templates, AdmissionReviews.

The parsers of the texts inside these objects are here too: quantities, names, image references, label selectors and
mpirun's command line. The types ignore every field that the service does not read. A wrong type raises `ShapeError`
with the path in the user's YAML. The package does no I/O and imports no other package of `webhook`.
"""
