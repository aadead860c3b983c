"""The objects on the wire: MPIJobs, pod templates, AdmissionReviews, and the small languages inside them.

All grammars are parsed in this package: quantities, names, image references, label selectors, mpirun's command line.
The arithmetic that several packages share is here too. The types contain only the fields that the service reads and
ignore all others. A wrong type raises `ShapeError` with the path in the user's YAML. The package does no I/O, knows no
policy and no cluster, and imports no other package.
"""
