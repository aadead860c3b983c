"""Where a job gets stuck, a file each: `causes` goes from what was seen of a job to what it waits for there.

`ends` and `logs` are for several of them.
"""
