"""The objects on the wire: MPIJobs, pod templates, AdmissionReviews, and the small languages inside them.

Every grammar is parsed here and nowhere else: quantities, names, image references, label selectors, mpirun's command
line. So is the arithmetic that several packages share. The types are tolerant: they hold the fields that are read and
skip the rest; a wrong type is a `ShapeError` with the path in the user's YAML. No I/O, no policy, nothing about a
particular cluster, and no import of another package.
"""
