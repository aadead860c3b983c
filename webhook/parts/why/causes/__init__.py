"""The stages at which a job gets stuck, a file each: `causes` returns what the job waits for at that stage.

`ends` and `logs` are for several of them.
"""
