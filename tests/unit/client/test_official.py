"""The official client without its other half."""

import subprocess
import sys


def printed(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()


def test_nothing_is_loaded_that_only_the_other_half_needs() -> None:
    heavy = ["requests", "urllib3", "websocket", "oauthlib", "kubernetes.client"]
    code = f"import sys; from webhook.client import official; print([name for name in {heavy} if name in sys.modules])"
    assert printed(code) == "[]"


def test_who_needs_the_other_half_gets_it() -> None:
    code = "from webhook.client import official; from kubernetes import config; import kubernetes.client as client;"
    assert printed(f"{code} print(client.V1Pod.__name__, config.load_kube_config.__name__)") == "V1Pod load_kube_config"


def test_a_client_that_is_loaded_already_is_taken() -> None:
    code = "import kubernetes.aio; from webhook.client import official; print(official.client is kubernetes.aio.client)"
    assert printed(code) == "True"
