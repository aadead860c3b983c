"""The options of the command `serve` become the settings of the process."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checking import run
from webhook.cli.main import main
from webhook.server import process


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[process.ServeSettings]]:
    settings_of_runs: list[process.ServeSettings] = []

    def run(settings: process.ServeSettings) -> int:
        settings_of_runs.append(settings)
        return 3

    monkeypatch.setattr(process, "run", run)
    yield settings_of_runs
    gc.enable()  # `serve` disables the garbage collector, which this fake `run` does not enable again


def test_serve_without_options_has_the_default_settings(served: list[process.ServeSettings]) -> None:
    assert run("serve").exit_code == 3
    assert served == [process.ServeSettings(listen=("0.0.0.0", 8443), ops_listen=("0.0.0.0", 8081))]


def test_serve_with_the_option_register_listens_only_on_loopback(served: list[process.ServeSettings]) -> None:
    run("serve", "--register")
    assert served == [process.ServeSettings(register=True, listen=("127.0.0.1", 0), ops_listen=("127.0.0.1", 0))]


def test_every_option_of_serve_becomes_a_setting(served: list[process.ServeSettings]) -> None:
    files = {f"--{name}": name for name in ("kubeconfig", "policy", "tls-cert", "tls-key", "tls-ca", "ca-file")}
    numbers = {"--drain-seconds": "0", "--max-in-flight": "7", "--timeout": "2.5", "--log-level": "debug"}
    keys = {"--ssh-keys-ready": "9", "--ssh-keys-rate": "0.5"}
    addresses = {"--listen": "[::1]:1", "--ops-listen": "localhost:2"}
    certificates = {"--ca-secret": "ca", "--service": "webhook"}
    times = {"--ca-lifetime": "90d", "--leaf-lifetime": "1h", "--ca-grace": "30s"}
    namespaces = {"--policy-namespace": "policies", "--kueue-namespace": "queues"}
    clients = {"--client-ca": "clients", "--client-name": "kube-apiserver"}
    options = clients | files | numbers | keys | addresses | certificates | times | namespaces
    of_parts = {
        "--deadline-events", "--job-metrics", "--network-policies", "--disruption-budgets", "--audit",
        "--conversion", "--trainer",
    }  # fmt: skip
    flags = ("--register", "--remove-keys", *of_parts)
    accepted = {option for parameter in main.commands["serve"].params for option in parameter.opts}
    assert accepted == {*options, *flags}
    run("serve", *flags, *(text for pair in options.items() for text in pair))
    assert served == [
        process.ServeSettings(
            kubeconfig=Path("kubeconfig"),
            policy=Path("policy"),
            policy_namespace="policies",
            kueue_namespace="queues",
            register=True,
            tls_cert=Path("tls-cert"),
            tls_key=Path("tls-key"),
            tls_ca=Path("tls-ca"),
            ca_secret="ca",
            service="webhook",
            ca_lifetime=90 * 86_400,
            leaf_lifetime=3600,
            ca_grace=30,
            ca_file=Path("ca-file"),
            client_ca=Path("clients"),
            client_names=("kube-apiserver",),
            listen=("::1", 1),
            ops_listen=("localhost", 2),
            drain_seconds=0,
            max_in_flight=7,
            timeout_seconds=2.5,
            ssh_keys_ready=9,
            ssh_keys_rate=0.5,
            remove_keys=True,
            options=of_parts,
            log_level="debug",
        )
    ]


@pytest.mark.parametrize(
    "option", ["--drain-seconds=-1", "--max-in-flight=0", "--timeout=x", "--log-level=loud", "--ssh-keys-rate=0"]
)
def test_serve_rejects_invalid_options(option: str, served: list[process.ServeSettings]) -> None:
    assert run("serve", option).exit_code == 2
    assert served == []
