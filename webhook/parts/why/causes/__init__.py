"""The causes by the stage at which a job gets stuck. `causes` in each module returns the causes of one stage.

Several stages use the modules `ends` and `logs`.
"""
