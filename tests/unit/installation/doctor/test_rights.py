"""`doctor` checks exactly the rights that the manifests grant."""

from typing import Any

import pytest

from tests.support.doctor_facts import LOCATION, MANIFESTS
from webhook.api import yaml
from webhook.client.access_reviews import Right
from webhook.installation.components import COMPONENTS
from webhook.installation.doctor import rights


def granted(*files: str) -> set[Any]:
    """The rights in the manifests, as (verb, group, resource, namespace, name)."""
    rights_in_manifests = set()
    for file in files:
        for role in yaml.load_all((MANIFESTS / file).read_text()):
            for rule in role.get("rules") or ():
                rights_in_manifests |= {
                    (verb, group, resource, role["metadata"].get("namespace", ""), name)
                    for verb in rule["verbs"]
                    for group in rule["apiGroups"]
                    for resource in rule["resources"]
                    for name in rule.get("resourceNames") or [""]
                }
    return rights_in_manifests


OPTIONS = [*(companion.option for companion in COMPONENTS), "--conversion"]


@pytest.mark.parametrize("options", [[], *([option] for option in OPTIONS), OPTIONS])
@pytest.mark.parametrize("ca_secret", ["", "mpijob-webhook-ca"])
def test_checked_rights_equal_the_manifests(ca_secret: str, options: list[str]) -> None:
    files = ["base/cluster-view.yaml", "base/rbac.yaml"]
    files += ["components/self-managed-certificates/rbac.yaml"] if ca_secret else []
    files += ["components/conversion-ca-bundle/rbac.yaml"] if ca_secret and "--conversion" in options else []
    files += [f"components/{each.component}/rbac.yaml" for each in COMPONENTS if each.option in options]
    queried = {
        (
            right.verb,
            right.group,
            right.resource,
            "" if right.namespace == "kueue-system" else right.namespace,
            right.name,
        )
        for purpose in rights.purposes(LOCATION, ca_secret=ca_secret, options=options)
        for right in purpose.rights
    }
    assert queried == granted(*files)


@pytest.mark.parametrize("options", [[], OPTIONS])
def test_no_right_is_both_needed_and_excess(options: list[str]) -> None:
    needed = {
        right
        for purpose in rights.purposes(LOCATION, ca_secret="mpijob-webhook-ca", options=options)
        for right in purpose.rights
    }
    assert not needed & set(rights.excess(LOCATION, options=options))
    assert (Right("delete", "", "secrets") in rights.excess(LOCATION, options=options)) is not bool(options)
