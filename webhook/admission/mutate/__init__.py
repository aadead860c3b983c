"""The mutating pipeline.

`pipeline` runs the injections, except injections that the job skips (`opt_out`). `updates` restores injected values
that an update dropped. `misspelled_annotations` warns about annotations that nothing reads. `api_server_checks` warns
about faults that the API server rejects before it calls the validating webhook.
"""
