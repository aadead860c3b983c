"""`mpijob-webhook why` names the reason why a job does not run, with the real operator, Kueue and scheduler."""

import re
from collections.abc import Iterator

import pytest

from tests.controlplane.cluster import Cluster, has_condition
from tests.controlplane.nodes import KEEP_RUNNING
from tests.support.jobs import REMOVE, changed
from tests.support.paths import MANIFESTS
from tests.support.rare import rare
from tests.support.stuck import page
from tests.support.stuck.cases import CASES, CONTAINER, TEAM, Case
from tests.support.stuck.world import World, stuck

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(log_dir=tmp_path_factory.mktemp("why-logs")) as running:
        yield running


@pytest.fixture(scope="module")
def world(cluster: Cluster) -> Iterator[World]:
    with stuck(cluster) as made:
        yield made


def test_succeeded_job_and_deadline_are_reported(world: World) -> None:
    ends = Case("ends", "", "")
    lasts = Case("lasts", "", "", {"spec.runPolicy.activeDeadlineSeconds": 7200})
    annotation = f"Launcher.template.metadata.annotations.{KEEP_RUNNING.replace('.', chr(92) + '.')}"
    jobs = [changed({annotation: REMOVE}, ends.job()), lasts.job()]
    world.cluster.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": jobs})
    patterns = {
        ends: r"team-a/ends succeeded at \S+ \S+Z, after \d+s$",
        lasts: r"team-a/lasts runs since .*, 2 of 2 workers ready; 1h59m\d+s of 2h left: at \S+ it is terminated ",
    }
    for case, pattern in patterns.items():
        line = world.first_line(Case(case.name, "", pattern))
        assert re.search(pattern, line), line


def test_worker_preempted_by_the_scheduler_is_reported(world: World) -> None:
    """A pod with a higher priority takes the worker's node. The operator creates a new worker, which waits."""
    loses = Case("loses", "", "", {f"{CONTAINER}.resources": {"limits": {"example.com/fpga": 1}}})
    world.make(loses)
    cluster = world.cluster
    cluster.wait_for("the job to run", lambda: has_condition(cluster.get("mpijob", "loses", "-n", TEAM), "Running"))
    container = {"name": "main", "image": "main:1", "resources": {"limits": {"example.com/fpga": "2"}}}
    urgent = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "urgent", "namespace": TEAM},
        "spec": {"priorityClassName": "urgent", "containers": [container]},
    }
    priority = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 1000,
    }
    cluster.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": [priority, urgent]})
    message = (
        r"loses-worker-\d( and 1 more)?: it was preempted by a pod with a higher priority \((Preempted by pod|default)"
    )
    cluster.wait_for("the message", lambda: re.search(message, world.why(f"{TEAM}/loses").stdout))


def test_user_with_the_role_view_sees_the_same_diagnosis(world: World) -> None:
    """The role `view` includes roles of Kueue and of this project, but no access to nodes and policies."""
    cluster = world.cluster
    cluster.kubectl("apply", "-f", MANIFESTS / "base" / "user-roles.yaml")
    cluster.kubectl("create", "rolebinding", "ann", "--clusterrole=view", "--user=ann", "-n", TEAM)
    ann = cluster.kubeconfig_for("ann")
    for kind in ("mpijobs.kubeflow.org", "workloads.kueue.x-k8s.io"):
        may = ("auth", "can-i", "get", kind, "-n", TEAM)
        allowed = lambda may=may: cluster.kubectl(*may, kubeconfig=ann, check=False).returncode == 0 or None  # noqa: E731
        cluster.wait_for("the aggregated role", allowed)
    names = ("queue-full", "never-fits", "no-claim", "no-node", "image", "wrong-key", "deadline", "refused")
    for case in (case for case in CASES if case.name in names):
        world.first_line(case)
        found = world.why(f"{TEAM}/{case.name}", kubeconfig=ann)
        assert re.search(case.says, found.stdout.partition("\n")[0]), found.stdout
        assert "not read: " not in found.stdout
        assert "not judged: rules that need " in found.stdout


@rare
def test_first_line_has_the_cause(world: World) -> None:
    """The documentation has a table of these lines. This test must run last, because it stops the operator."""
    lines = world.first_lines()
    wrong = {case.name: line for case, line in lines.items() if not re.search(case.says, line)}
    assert wrong == {}
    assert page.table(lines) == page.shown(page.PAGE.read_text()), "run `make why`"
