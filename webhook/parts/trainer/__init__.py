"""Kubeflow Trainer's TrainJobs and MPI runtimes: `serve --trainer`, `check --trainer` and `convert trainjob`.

`shape` builds an MPIJob with the same pods as a TrainJob and its runtime. `pipeline` applies the rules in `selection`
to this MPIJob, and `places` translates field paths back. `check` judges files. `conversion` converts an MPIJob to a
TrainJob.
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
