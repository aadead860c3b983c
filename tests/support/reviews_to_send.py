"""Reviews that tests send to a service."""

from tests.support import jobs

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
GOOD = jobs.body(jobs.GOOD)
COMMAND = "Launcher.template.spec.containers.0.command"
# Without -np, mpirun starts as many ranks as there are slots, so there is no second violation.
ONE_WORKER = jobs.body(jobs.changed({"Worker.replicas": 1, COMMAND: ["mpirun", "python"]}))
HOOKS = ["/mutate-mpijob", "/validate-mpijob"]


def exempting():
    """A job that requests an exemption from the rule that it violates."""
    exempt = {"training.openshift.io/exempt": "worker-count", "training.openshift.io/exempt-reason": "a test"}
    return jobs.body(
        jobs.changed({"metadata.annotations": exempt, "Worker.replicas": 1, COMMAND: ["mpirun", "python"]})
    )
