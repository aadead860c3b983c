"""The mutating pipeline.

`pipeline` runs the injections, except those that `opt_out` leaves out. `updates` gives an update back what it lost of
the stored job. `misspelled_annotations` and `api_server_checks` warn of faults that the service could not report later,
because the API server answers first or nothing reads the annotation.
"""
