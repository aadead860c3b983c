"""Rules and injections of other packages, found by their entry points.

`api` is what such a package imports, and `testing` what its tests do: the names there stay as they are. `loading`
takes in those that an administrator names, `guard` keeps a broken one from doing harm. What a plug-in finds goes the
same ways as what a rule of ours finds: nothing here decides about a job.
"""
