"""Each field of a kubeconfig is either supported or rejected. No field is ignored."""

import asyncio
import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.support.object_api import fake_api, kubeconfig
from webhook.client import calls
from webhook.client.access import Access, Impersonation, KubeconfigError
from webhook.client.calls import ClusterError
from webhook.client.objects import get

ALICE = {"as": "alice", "as-groups": ["ml", "ml,ops"], "as-uid": "7", "as-user-extra": {"a.b/C": ["x", "y"]}}
HEADERS = [
    ("Impersonate-User", "alice"),
    ("Impersonate-Group", "ml"),
    ("Impersonate-Group", "ml,ops"),
    ("Impersonate-Uid", "7"),
    ("Impersonate-Extra-a.b%2FC", "x"),
    ("Impersonate-Extra-a.b%2FC", "y"),
]
BOB = Impersonation("bob", groups=("sales",))


def cluster(**fields: Any) -> list[dict[str, Any]]:
    """The clusters of a kubeconfig. Underscores in the names of `fields` become hyphens."""
    return [{"name": "c", "cluster": {key.replace("_", "-"): value for key, value in fields.items()}}]


def with_user(path: Path, server: str, **user: Any) -> Path:
    return kubeconfig(path, server, users=[{"name": "u", "user": {"token": "t0ken", **user}}])


async def send_request(access: Access | Path) -> None:
    api = await calls.connect(access)
    try:
        await get(api, "/api/v1/namespaces/x")
    finally:
        await api.close()


@pytest.mark.parametrize(
    ("user", "impersonation", "sent"),
    [
        ({}, Impersonation(), []),
        (ALICE, Impersonation(), HEADERS),
        ({}, BOB, [("Impersonate-User", "bob"), ("Impersonate-Group", "sales")]),
        (ALICE, BOB, [("Impersonate-User", "bob"), ("Impersonate-Group", "sales"), *HEADERS[3:]]),
        (
            ALICE,
            Impersonation("bob", uid="8"),
            [("Impersonate-User", "bob"), *HEADERS[1:3], ("Impersonate-Uid", "8"), *HEADERS[4:]],
        ),
        ({"as": "alice"}, Impersonation(groups=("ml",)), HEADERS[:2]),
    ],
)
async def test_impersonation_is_sent_with_every_request(
    user: dict[str, Any], impersonation: Impersonation, sent: list[tuple[str, str]], tmp_path: Path
) -> None:
    with fake_api() as api:
        await send_request(Access(with_user(tmp_path / "config", api.url, **user), impersonation=impersonation))
        assert api.impersonated == [sent]


async def test_user_of_the_context_is_used(tmp_path: Path) -> None:
    users = [{"name": "u", "user": {"token": "t0ken"}}, {"name": "v", "user": {"token": "t0ken", "as": "alice"}}]
    contexts = [{"name": user, "context": {"cluster": "c", "user": user}} for user in "uv"]
    with fake_api() as api:
        config = kubeconfig(tmp_path / "config", api.url, users=users, contexts=contexts, **{"current-context": "u"})
        await send_request(config)
        await send_request(Access(config, "v"))
        assert api.impersonated == [[], HEADERS[:1]]


async def test_current_context_of_the_first_file_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A context of any file can be chosen, as in kubectl."""
    with fake_api() as api:
        first = kubeconfig(tmp_path / "one", api.url)
        clusters = [{"name": "d", "cluster": {"server": "https://127.0.0.1:1"}}]
        contexts = [{"name": "y", "context": {"cluster": "d", "user": "u"}}]
        second = kubeconfig(tmp_path / "two", "", clusters=clusters, contexts=contexts, **{"current-context": "y"})
        monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'none'}:{first}:{second}")
        await send_request(Access())
        assert len(api.calls) == 1
        with pytest.raises(ClusterError, match="https://127"):
            await send_request(Access(context="y"))


async def test_missing_files_are_named_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'a'}:{tmp_path / 'b'}")
    with pytest.raises(ClusterError, match="none of these files exists"):
        await send_request(Access())


async def test_line_break_after_a_token_is_removed(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t0ken\n")
    users = [{"name": "u", "user": {"tokenFile": "token"}}]
    with fake_api() as api:
        await send_request(kubeconfig(tmp_path / "config", api.url, users=users))
        assert len(api.calls) == 1


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        ({"as-groups": ["ml"]}, "it names groups, a uid or extra to impersonate, but no user: add --as or `as`"),
        ({"as-uid": "7"}, "it names groups, a uid or extra to impersonate, but no user: add --as or `as`"),
        ({"as": "a\nb"}, "the user, group, uid or extra to impersonate contains control characters"),
        ({"as": 7}, "as and as-uid of its user must be text"),
        ({"as": "a", "as-uid": 7}, "as and as-uid of its user must be text"),
        ({"as": "a", "as-groups": "ml"}, "as-groups of its user must be a list of texts"),
        ({"as": "a", "as-user-extra": {"k": "v"}}, "as-user-extra of its user must be a mapping to lists of texts"),
        ({"as-user": "a", "x": 1}, "as-user, x of its user is not supported"),
        ({"tokenFile": "f"}, "its user has a token and a tokenFile, keep one of them"),
        ({"exec": {"command": "login"}}, "its user has a token and a plugin under exec, keep one of them"),
        ({"token": "a\nb"}, "its token contains control characters"),
        (
            {"auth-provider": {"name": "gcp"}},
            "the auth-provider gcp is not supported: since 1.26 kubectl supports only oidc; use a plugin under exec",
        ),
        ({"token": "", "exec": {"args": []}}, "exec of its user has no command"),
        (
            {"token": "", "exec": {"command": "login", "provideClusterInfo": True}},
            "provideClusterInfo of the plugin login under exec is not supported",
        ),
        (
            {"token": "", "exec": {"command": "bin/login"}},
            "the plugin bin/login under exec has a relative path: write the full path",
        ),
        (
            {"token": "", "exec": {"command": "/bin/false", "apiVersion": "client.authentication.k8s.io/v1"}},
            "the plugin under exec of its user gave no credentials",
        ),
    ],
)
async def test_unsupported_user_is_rejected(user: dict[str, Any], reason: str, tmp_path: Path) -> None:
    config = with_user(tmp_path / "config", "https://127.0.0.1:1", **user)
    with pytest.raises(ClusterError) as caught:
        await calls.connect(config)
    assert str(caught.value) == f"cannot use {config}: {reason}"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"clusters": cluster()}, "its cluster has no server"),
        (
            {"clusters": cluster(server="https://c", tls_min_version="1.3")},
            "tls-min-version of its cluster is not supported",
        ),
        (
            {"clusters": cluster(server="https://c", proxy_url="socks5://p")},
            "the proxy-url socks5://p is not supported, only http and https",
        ),
        (
            {"clusters": cluster(server="https://c", insecure_skip_tls_verify=True, certificate_authority_data="Zm9v")},
            "its cluster has a certificate-authority and insecure-skip-tls-verify, keep one of them",
        ),
        ({"users": []}, 'it has no user "u", which its context names'),
        ({"clusters": []}, 'it has no cluster "c", which its context names'),
        (
            {"current-context": "trian", "contexts": [{"name": "train", "context": {"cluster": "c"}}]},
            'it has no context "trian"; did you mean "train"?',
        ),
        ({"current-context": ""}, "it has no current-context: name one with --context"),
        ({"contexts": [], "current-context": "y"}, 'it has no context "y"'),
        ({"users": [{"name": "u", "user": ["token"]}]}, "its user is not a mapping"),
    ],
)
async def test_unsupported_cluster_is_rejected(changes: dict[str, Any], reason: str, tmp_path: Path) -> None:
    config = kubeconfig(tmp_path / "config", "https://127.0.0.1:1", **changes)
    with pytest.raises(ClusterError) as caught:
        await calls.connect(config)
    assert str(caught.value) == f"cannot use {config}: {reason}"


async def test_credential_plugin_and_proxy_of_the_kubeconfig_are_used(tmp_path: Path) -> None:
    version = "client.authentication.k8s.io/v1"
    credential = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": {"token": "t0ken"}})
    plugin = {"command": sys.executable, "args": ["-c", f"print({credential!r})"], "apiVersion": version}
    with fake_api() as api:
        users = [{"name": "u", "user": {"exec": plugin}}]
        clusters = cluster(server="http://nowhere.invalid", proxy_url=api.url)
        await send_request(kubeconfig(tmp_path / "config", "", users=users, clusters=clusters))
        assert api.calls == [("GET", "/api/v1/namespaces/x")]


@pytest.mark.parametrize(("bypassed", "reached"), [("", True), ("nowhere.invalid", False)])
async def test_proxy_of_the_environment_is_used_for_hosts_outside_of_no_proxy(
    bypassed: str, reached: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_api() as api:
        monkeypatch.setenv("http_proxy", api.url)
        monkeypatch.setenv("no_proxy", bypassed)
        with nullcontext() if reached else pytest.raises(ClusterError):
            await send_request(kubeconfig(tmp_path / "config", "http://nowhere.invalid"))
        assert bool(api.calls) is reached


async def test_request_uses_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request also ignores ~/.netrc, because the passwords in that file are not for API servers."""
    threads: list[object] = []
    monkeypatch.setattr(asyncio.get_running_loop(), "run_in_executor", lambda *call: threads.append(call))
    with fake_api() as api:
        await send_request(kubeconfig(tmp_path / "config", api.url))
        assert api.calls == [("GET", "/api/v1/namespaces/x")]
    assert not threads


def test_impersonation_by_groups_needs_a_user() -> None:
    with pytest.raises(KubeconfigError):
        _ = Impersonation(groups=("ml",)).headers
