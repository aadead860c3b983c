"""Converts jobs of older versions of MPIJob: the command `convert`, and `/convert` for a CRD with several versions.

`older_jobs` converts jobs in files to v2beta1. `both_ways` converts a job to any version and back without loss.
`reviews` handles the API server's ConversionReviews.
"""

from typing import Final

from webhook.kit.optional_parts import Part, PartHook

OPTION: Final = "--conversion"
PART: Final = Part(
    conversions={"mpijob": "webhook.parts.older_versions.command:mpijob"},
    options={OPTION: "Convert jobs of older versions at /convert, for a CRD with these versions."},
    excludes={"client_ca": "the API server has no client certificate for conversions"},
    hooks=(
        PartHook(
            name="convert",
            path="/convert",
            option=OPTION,
            off="versions are converted only with --conversion",
            answer="webhook.parts.older_versions.reviews:converted",
        ),
    ),
)
