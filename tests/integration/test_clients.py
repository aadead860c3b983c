"""Compares docs/clients.md with the real output of clients for a rejection, a warning and an injection."""

import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, config

from tests.controlplane.cluster import Cluster
from tests.support.clients_page import shown
from tests.support.installation.service import example
from tests.support.jobs import changed
from tests.support.paths import EXAMPLES

pytestmark = pytest.mark.usefixtures("webhook")
BAD = EXAMPLES / "bad-one-worker.yaml"
GOOD = EXAMPLES / "openmpi-pi.yaml"
WHERE = ("kubeflow.org", "v2beta1")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A separate cluster, because nodes of other tests would cause injections and warnings."""
    with Cluster(log_dir=tmp_path_factory.mktemp("clients-logs")) as running:
        yield running


@pytest.fixture
def api(cluster: Cluster) -> client.CustomObjectsApi:
    return client.CustomObjectsApi(config.new_client_from_config(str(cluster.kubeconfig)))


def refused(api: client.CustomObjectsApi, namespace: str) -> client.ApiException:
    with pytest.raises(client.ApiException) as caught:
        api.create_namespaced_custom_object(*WHERE, namespace, "mpijobs", example(BAD, namespace=namespace))
    return caught.value


def test_rejection_in_kubectl(cluster: Cluster, namespace: str) -> None:
    done = cluster.kubectl("create", "-f", "-", stdin=example(BAD, namespace=namespace), check=False)
    assert done.stderr.replace(" \n", "\n") == shown("kubectl")


def test_rejection_in_the_python_client(api: client.CustomObjectsApi, namespace: str) -> None:
    error = refused(api, namespace)
    assert (error.status, error.reason) == (422, "Unprocessable Entity")
    message = json.loads(error.body)["message"]
    assert f"{message}\n" == shown("Python")
    assert json.dumps(message)[1:-1] in str(error), "the text of the exception has the message as JSON"


def test_rejection_in_the_openshift_console(api: client.CustomObjectsApi, namespace: str) -> None:
    """`validateStatus` of https://github.com/openshift/console shows only the first cause."""
    status = json.loads(refused(api, namespace).body)
    assert status["code"] != 403
    first = status["details"]["causes"][0]
    assert f'Error "{first["message"]}" for field "{first["field"]}".\n' == shown("OpenShift console")


def test_rejection_in_the_dashboard(api: client.CustomObjectsApi, namespace: str) -> None:
    """The dashboard first creates the job by dry run, and shows the message of the error.

    See `K8sStatusError` of https://github.com/opendatahub-io/odh-dashboard.
    """
    job = example(BAD, namespace=namespace)
    with pytest.raises(client.ApiException) as caught:
        api.create_namespaced_custom_object(*WHERE, namespace, "mpijobs", job, dry_run="All")
    assert caught.value.body == refused(api, namespace).body
    assert f"{json.loads(caught.value.body)['message']}\n" == shown("OpenShift AI dashboard")


def questionable(namespace: str) -> dict[str, Any]:
    return changed({"spec.runPolicy.ttlSecondsAfterFinished": 1}, example(GOOD, namespace=namespace, name="pi"))


def test_warnings_in_each_client(cluster: Cluster, api: client.CustomObjectsApi, namespace: str) -> None:
    done = cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=questionable(namespace))
    assert done.stderr == shown("Warnings")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        api.create_namespaced_custom_object(*WHERE, namespace, "mpijobs", questionable(namespace), dry_run="All")
    assert caught == []


def test_clients_see_the_injected_values(api: client.CustomObjectsApi, namespace: str) -> None:
    stored = api.create_namespaced_custom_object(*WHERE, namespace, "mpijobs", questionable(namespace))
    injected = stored["metadata"]["annotations"]["training.openshift.io/injected"].split(",")
    assert f"{', '.join(injected)}\n" == shown("What was injected")
    assert stored["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false"
