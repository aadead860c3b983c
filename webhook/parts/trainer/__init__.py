"""Kubeflow Trainer's TrainJobs and MPI runtimes: `serve --trainer`, `check --trainer` and `convert trainjob`.

`shape` makes an MPIJob of a TrainJob and its runtime, with a map of `places`: where each field was written. `pipeline`
applies the rules in `selection` to it, and translates paths and words back. `kinds` has the names of Trainer's API,
`resources` the watched objects, `quota` what quotas and Kueue count, `webhooks` the hooks, `check` the verdicts on
files. `conversion` makes a TrainJob of an MPIJob, for the command in `command`.
"""

from typing import Final

from webhook.kit.optional_parts import ComponentRights, Part, PartCheck, PartHook, RoleRule

OPTION: Final = "--trainer"
PART: Final = Part(
    conversions={"trainjob": "webhook.parts.trainer.command:trainjob"},
    options={OPTION: "Check Kubeflow Trainer's MPI TrainJobs; needs permission to read runtimes."},
    rights=(
        ComponentRights(
            "trainer",
            OPTION,
            "TrainJobs are admitted without a check, because their runtimes are unknown",
            (
                RoleRule(
                    "trainer.kubeflow.org",
                    ("clustertrainingruntimes", "trainingruntimes", "trainjobs"),
                    ("get", "list", "watch"),
                ),
            ),
        ),
    ),
    hooks=(
        PartHook(
            name="trainer",
            path="/validate-trainer",
            decide="webhook.parts.trainer.pipeline:decide",
            too_expensive="webhook.parts.trainer.pipeline:too_expensive",
        ),
    ),
    webhooks="webhook.parts.trainer.webhooks:hooks",
    watched="webhook.parts.trainer.resources:WATCHED",
    jobs="webhook.parts.trainer.quota:JOBS",
    check=PartCheck(
        option=OPTION,
        help="Check TrainJobs of Kubeflow Trainer and their MPI runtimes too, as `serve --trainer` does.",
        kinds=("TrainJob", "TrainingRuntime"),
        subject="TrainJob or MPI runtime",
        judge="webhook.parts.trainer.check:judge",
    ),
)
