"""Jobs of older versions of MPIJob: the command `convert`, and `/convert` for a CRD that has these versions.

`older_jobs.convert` converts jobs in files; each version has its own file, and their common parts are in
`replica_specs`, `run_policy` and `transport`. `both_ways` shows a stored job in the version that a client requests, and
`reviews` answers the API server.
"""

from typing import Final

from webhook.kit.optional_parts import Part, PartHook

OPTION: Final = "--conversion"
PART: Final = Part(
    conversions={"mpijob": "webhook.parts.older_versions.command:mpijob"},
    options={OPTION: "Convert jobs of older versions at /convert, for a CRD with these."},
    excludes={"client_ca": "the API server has no client certificate for conversions"},
    hooks=(
        PartHook(
            name="convert",
            path="/convert",
            option=OPTION,
            off="versions are converted with --conversion alone",
            answer="webhook.parts.older_versions.reviews:converted",
        ),
    ),
)
