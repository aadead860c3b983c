"""Records how the imported `webhook` replies to each case: `python record.py INPUT OUTPUT`, with PYTHONPATH set.

It imports no other test module, because it also runs with the code of an older revision. INPUT is a JSON object with
`policies`, `clusters` and `cases`. OUTPUT gets a line of JSON for each case: the reply in the case's cluster, then the
replies in all clusters.
"""

import json
import sys
from datetime import date
from inspect import signature
from pathlib import Path
from typing import Any

import msgspec

from webhook.admission import pipelines
from webhook.api import review
from webhook.cluster.snapshot import Snapshot
from webhook.policy.document import PolicyError, load
from webhook.policy.in_force import PolicySet, policy_model
from webhook.policy.layers import Layer

TODAY = date(2026, 3, 2)


def main(source: str, target: str) -> None:
    given = json.loads(Path(source).read_text())
    policies = [_policy(text) for text in given["policies"]]
    views = [Snapshot(documents) for documents in given["clusters"]]
    with Path(target).open("wb") as output:
        for case in given["cases"]:
            replies = [_reply(case, policies[case["policy"]], view) for view in (views[case["cluster"]], *views)]
            output.write(b" ".join(replies) + b"\n")


def _policy(text: str) -> PolicySet:
    """The parsed policy, or an empty policy if this revision lacks a setting that the policy uses."""
    try:
        return PolicySet([Layer("drawn", load(text, policy_model()))] if text else [])
    except PolicyError:
        return PolicySet()


def _reply(case: dict[str, Any], policies: PolicySet, view: Snapshot) -> bytes:
    metadata = case["job"].get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else ""
    request = {
        "uid": "u-1",
        "kind": {"group": "kubeflow.org", "version": "v2beta1", "kind": "MPIJob"},
        "name": "train",
        "namespace": namespace if isinstance(namespace, str) else "team-0000",
        "operation": "UPDATE" if case["old"] else "CREATE",
        "userInfo": {"username": case["user"], "groups": ["system:authenticated"]},
        "object": case["job"],
        "oldObject": case["old"],
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    decoded = review.decode(json.dumps(body, separators=(",", ":")).encode())
    arguments = {"policies": policies, "view": view, "today": TODAY}
    if "time_left" in signature(pipelines.decide).parameters:  # in older revisions
        arguments["time_left"] = lambda: float("inf")
    try:
        decision = pipelines.decide(case["hook"], decoded, **arguments)
    except Exception as fault:  # noqa: BLE001 - the server would reply with HTTP 500
        return json.dumps({"raised": repr(fault)}).encode() + b" null"
    reply = review.encode(decision.response("u-1"))
    reservation = msgspec.json.encode(decision.reservation)
    return reply + b" " + reservation


if __name__ == "__main__":
    main(*sys.argv[1:])
