import asyncio
import base64
import re

import pytest

from tests.support.live_service import live
from tests.support.object_api import fake_api, kubeconfig
from webhook.client import calls
from webhook.client.calls import ClusterError
from webhook.installation.registration import (
    BY_REGISTER,
    MADE_BY,
    NAME,
    Registration,
    by_service,
    by_url,
    configurations,
)
from webhook.parts.trainer.webhooks import hooks as trainer_hooks
from webhook.server.service import StartError

PREFIX = "/apis/admissionregistration.k8s.io/v1"
MUTATING = f"{PREFIX}/mutatingwebhookconfigurations/{NAME}"
# --register does not remove the namespace, because it may contain policies.
NAMESPACE = "/api/v1/namespaces/mpijob-webhook"
VALIDATING = f"{PREFIX}/validatingwebhookconfigurations/{NAME}"
OURS = {MADE_BY: BY_REGISTER}
WANTED = configurations(by_url("https://192.0.2.7:8443", b"CA"), labels=OURS, policy_namespace="policies")


# The complete objects are in manifests/components/hooks/webhooks.yaml and manifests/components/trainer/webhooks.yaml.


def test_trainer_hooks_need_the_option_trainer_and_come_last():
    client_config = by_url("https://192.0.2.7:8443", b"CA")
    _, plain = configurations(client_config, labels={}, policy_namespace="policies")
    _, validating = configurations(client_config, labels={}, policy_namespace="policies", options={"--trainer"})
    expected = trainer_hooks(client_config, "policies")
    assert validating["webhooks"] == [*plain["webhooks"], *expected]
    assert [hook["clientConfig"] for hook in expected] == [
        {"url": "https://192.0.2.7:8443/validate-trainer", "caBundle": "Q0E="}
    ] * 3


def test_development_server_has_the_hooks_of_the_manifests():
    installed = configurations(by_service("policies", "b"), labels={}, policy_namespace="policies")
    for ours, theirs in zip(WANTED, installed, strict=True):
        assert ours["metadata"]["labels"] == theirs["metadata"]["labels"] | OURS
        assert [hook["clientConfig"]["url"] for hook in ours["webhooks"]] == [
            f"https://192.0.2.7:8443{hook['clientConfig']['service']['path']}" for hook in theirs["webhooks"]
        ]
        for hook, installed_hook in zip(ours["webhooks"], theirs["webhooks"], strict=True):
            assert hook | {"clientConfig": None} == installed_hook | {"clientConfig": None}


def test_mutating_configuration_sorts_before_kueues_configuration():
    assert WANTED[0]["metadata"]["name"] < "kueue-mutating-webhook-configuration"


def test_client_config_names_the_service_and_the_path():
    path = "/validate-mpijob"
    service = {"namespace": "training", "name": "webhook", "port": 443, "path": path}
    assert by_service("training", "webhook")(path) == {"service": service}


@pytest.fixture
def api():
    with fake_api() as running:
        yield running


@pytest.fixture
async def registration(api, tmp_path):
    made = Registration(await calls.connect(kubeconfig(tmp_path / "config", api.url)))
    yield made
    await made.close()


async def test_installed_objects_are_removed(api, registration):
    await registration.install(WANTED)
    assert set(api.objects) == {MUTATING, VALIDATING}
    assert api.objects[MUTATING]["webhooks"] == WANTED[0]["webhooks"]
    await registration.remove()
    assert api.objects == {}
    await registration.remove()  # a second removal does nothing
    assert len([call for call in api.calls if call[0] == "DELETE"]) == 2


async def test_objects_of_an_earlier_run_are_replaced(api, registration):
    stale = api.put(VALIDATING, **OURS)
    await registration.install(WANTED)
    assert set(api.objects) == {MUTATING, VALIDATING}
    assert api.objects[VALIDATING]["metadata"]["uid"] != stale


@pytest.mark.parametrize("path", [MUTATING, VALIDATING])
@pytest.mark.parametrize("labels", [{}, {MADE_BY: "Helm"}])
async def test_objects_of_an_installation_are_not_changed(api, registration, path, labels):
    api.put(path, **labels)
    before = dict(api.objects)
    with pytest.raises(ClusterError) as error:
        await registration.install(WANTED)
    assert str(error.value) == (
        f"{path.split('/')[-2]}/admission.mpijob.training.openshift.io exists and was not made by --register; "
        "use another cluster, or uninstall the webhook from this one first"
    )
    assert api.objects == before
    await registration.remove()
    assert api.objects == before
    assert {method for method, _ in api.calls} == {"GET"}


async def test_object_that_was_replaced_during_the_run_is_not_deleted(api, registration):
    await registration.install(WANTED)
    theirs = api.put(VALIDATING, **OURS)
    await registration.remove()
    assert {path: found["metadata"]["uid"] for path, found in api.objects.items()} == {VALIDATING: theirs}


async def test_object_that_was_removed_during_the_run_is_not_an_error(api, registration):
    await registration.install(WANTED)
    api.objects.clear()
    await registration.remove()


async def test_failed_removal_of_one_object_does_not_stop_the_removal_of_the_other(api, registration):
    await registration.install(WANTED)
    api.refusals["DELETE", VALIDATING] = (500, "etcd is gone")
    with pytest.raises(ClusterError) as error:
        await registration.remove()
    assert set(api.objects) == {VALIDATING}
    assert str(error.value) == (
        f"validatingwebhookconfigurations/{NAME} may be left behind: "
        f"the API server at {api.url} rejected the request: etcd is gone (500)"
    )


async def test_object_is_removed_if_the_answer_to_its_creation_was_lost(api, registration, monkeypatch):
    real = registration._client.request

    async def lossy(method, path, body=None):
        answer = await real(method, path, body)
        if method == "POST" and "validating" in path:
            raise ClusterError("the API server does not answer")
        return answer

    monkeypatch.setattr(registration._client, "request", lossy)
    with pytest.raises(ClusterError, match="does not answer"):
        await registration.install(WANTED)
    assert api.objects == {}


async def test_object_that_is_created_during_the_installation_is_not_changed(api, registration, monkeypatch):
    real = registration._client.request

    async def slow(method, path, body=None):
        if method == "POST" and "validating" in path:
            api.put(VALIDATING)
        return await real(method, path, body)

    monkeypatch.setattr(registration._client, "request", slow)
    with pytest.raises(ClusterError, match=r"already exists \(409\)$"):
        await registration.install(WANTED)
    assert set(api.objects) == {VALIDATING}


async def test_cancelled_removal_continues(api, registration, monkeypatch):
    await registration.install(WANTED)
    real = registration._client.request
    requested = asyncio.Event()
    answer = asyncio.Event()

    async def slow(*args):
        requested.set()
        await answer.wait()
        return await real(*args)

    monkeypatch.setattr(registration._client, "request", slow)
    closing = asyncio.create_task(registration.close())
    await requested.wait()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    answer.set()
    await registration.close()
    assert api.objects == {}


def test_service_is_registered_while_it_runs(api, tmp_path):
    with live(register=True, kubeconfig=kubeconfig(tmp_path / "config", api.url)) as service:
        config = api.objects[MUTATING]["webhooks"][0]["clientConfig"]
        assert config["url"] == f"{service.service.url}/mutate-mpijob"
        assert base64.b64decode(config["caBundle"]) == service.service.ca_pem
    assert set(api.objects) == {NAMESPACE}


def test_configurations_are_removed_before_the_service_stops(api, tmp_path):
    remaining = []

    async def pause(_):
        remaining.append(dict(api.objects))

    with live(register=True, kubeconfig=kubeconfig(tmp_path / "config", api.url)) as service:
        service.begin(service.service.drain(pause=pause)).result(30)
    assert [set(objects) for objects in remaining] == [{NAMESPACE}]


def test_failed_service_removes_its_configurations(api, tmp_path):
    registered = []

    def fail():
        registered.extend(api.objects)
        raise RuntimeError("on purpose")

    settings = {"register": True, "kubeconfig": kubeconfig(tmp_path / "config", api.url)}
    with pytest.raises(RuntimeError, match="on purpose"), live(**settings):
        fail()
    assert set(registered) == {NAMESPACE, MUTATING, VALIDATING}
    assert set(api.objects) == {NAMESPACE}


def test_configurations_left_behind_are_logged(api, tmp_path):
    with live(register=True, kubeconfig=kubeconfig(tmp_path / "config", api.url)) as service:
        api.refusals["DELETE", MUTATING] = (500, "etcd is gone")
    (line,) = service.log("webhook configurations are left behind")
    assert MUTATING.split("/")[-2] in line["reason"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it is not a complete kubeconfig"),
        (b"[]", "it is not a complete kubeconfig"),
        (b"a: [", "while parsing.*"),
        (b"\xff\xfe\x00", ".*"),
        ({"current-context": "nope"}, 'it has no context "nope"'),
        ({"contexts": None}, ".*"),
        ({"clusters": [{"name": "c"}]}, ".*"),
    ],
)
def test_unusable_kubeconfig_is_an_error(tmp_path, content, problem):
    if isinstance(content, bytes):
        (tmp_path / "config").write_bytes(content)
    else:
        kubeconfig(tmp_path / "config", "https://127.0.0.1:1", **content)
    error = not_started(tmp_path / "config")
    assert re.fullmatch(rf"cannot use \S+/config: {problem}", error)


def not_started(config):
    """The reason why a service with this kubeconfig does not start. It must be on one line."""
    with pytest.raises(StartError) as error, live(register=True, kubeconfig=config):
        pass
    assert "\n" not in str(error.value)
    return str(error.value)


def test_missing_kubeconfig_is_an_error(tmp_path):
    path = tmp_path / "none"
    assert not_started(path) == f"cannot read the kubeconfig {path}: No such file or directory"


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ("http://127.0.0.1:1", "cannot reach the API server at http://127.0.0.1:1: Connection refused"),
        ("https://", "cannot reach the API server at https:: that is not a URL"),
        ("ftp://127.0.0.1", "cannot reach the API server at ftp://127.0.0.1: that is not a URL"),
    ],
)
def test_unreachable_api_server_is_an_error(tmp_path, server, problem):
    assert not_started(kubeconfig(tmp_path / "config", server)) == problem


def test_denied_registration_is_an_error(api, tmp_path):
    users = [{"name": "u", "user": {"token": "wrong"}}]
    refused = not_started(kubeconfig(tmp_path / "config", api.url, users=users))
    assert refused == f"the API server at {api.url} does not accept the credentials (401)"
    api.refusals["POST", MUTATING.removesuffix(f"/{NAME}")] = (403, "you may not")
    refused = not_started(kubeconfig(tmp_path / "config", api.url))
    assert refused == f"the API server at {api.url} rejected the request: you may not (403)"
