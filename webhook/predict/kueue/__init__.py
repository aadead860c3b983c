"""Predictions for Kueue v0.18.3. `managed`: does it manage a job? `feasibility`: could it ever admit the job?"""
