"""A user who does what our messages say, to the letter, and submits the job again.

`python -m tests.support.mender` mends every broken job and prints, for each rule, in how many rounds.
"""
