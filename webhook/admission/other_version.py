"""What is said of an MPIJob of another version than the MPI operator knows."""

from webhook import PROGRAM
from webhook.admission.messages import SCHEMA, Finding
from webhook.api import mpijob
from webhook.rules import CauseReason, Violation, shortened


def finding(api_version: str) -> Finding:
    """The refusal: an older job can be converted."""
    if api_version in mpijob.OLDER_VERSIONS:
        fix = f"Run `{PROGRAM} convert FILE`: it writes the job anew, and says what is left to do."
    else:
        fix = f"Set apiVersion to {mpijob.API_VERSION}, and check the fields: other versions have others."
    message = f'"{shortened(api_version)}" is not served, the MPI operator knows only {mpijob.API_VERSION}'
    return Finding(SCHEMA, Violation("apiVersion", message, fix=fix, reason=CauseReason.NOT_SUPPORTED))
