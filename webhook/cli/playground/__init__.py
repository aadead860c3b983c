"""The command `playground`: a page on which the verdict on a job comes while it is typed.

`verdicts` answers with texts alone: no file, no network. `server` is what hands it to a browser, `page_data` what the
page shows besides: examples, explanations, and the schemas that complete what is typed. The page itself is in `page/`
of the repository; what `make page` builds of it lies beside this file.
"""
