"""The mutating pipeline.

`pipeline` runs the injections, except injections that the job skips (`opt_out`). `updates` restores injected values if
an update dropped them. `misspelled_annotations` warns about annotations that nothing reads. `api_server_checks` warns
about faults for which the API server will reject the job before the validating webhook.
"""
