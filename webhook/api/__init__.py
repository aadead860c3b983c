"""What is on the wire: MPIJobs, pod templates, AdmissionReviews, and the small languages inside them.

Quantities, names, image references, label selectors, mpirun's command line: whatever has a grammar of its own is read
here and nowhere else. So is the arithmetic that objects of several rooms share. The types are tolerant: they hold the
fields that are read, and skip the rest; a wrong type is a `ShapeError` with the path in the user's YAML. No I/O, no
policy, nothing about a particular cluster, and no import of another room.
"""
