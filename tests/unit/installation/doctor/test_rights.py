"""The doctor asks for the rights that the manifests give, no more and no less."""

from typing import Any

import pytest

from tests.support.doctor_facts import LOCATION, MANIFESTS
from webhook.api import yaml
from webhook.client.access_reviews import Right
from webhook.installation.doctor import rights


def granted(*files: str) -> set[Any]:
    """What the manifests give the service, as (verb, group, resource, namespace, name)."""
    found = set()
    for file in files:
        for role in yaml.load_all((MANIFESTS / file).read_text()):
            for rule in role.get("rules") or ():
                found |= {
                    (verb, group, resource, role["metadata"].get("namespace", ""), name)
                    for verb in rule["verbs"]
                    for group in rule["apiGroups"]
                    for resource in rule["resources"]
                    for name in rule.get("resourceNames") or [""]
                }
    return found


@pytest.mark.parametrize("remove_keys", [False, True])
@pytest.mark.parametrize("ca_secret", ["", "mpijob-webhook-ca"])
def test_the_rights_are_those_of_the_manifests(ca_secret: str, remove_keys: bool) -> None:
    files = ["base/cluster-view.yaml", "base/rbac.yaml"]
    files += ["components/self-managed-certificates/rbac.yaml"] if ca_secret else []
    files += ["components/key-removal/rbac.yaml"] if remove_keys else []
    asked = {
        (
            right.verb,
            right.group,
            right.resource,
            "" if right.namespace == "kueue-system" else right.namespace,
            right.name,
        )
        for purpose in rights.purposes(LOCATION, ca_secret=ca_secret, remove_keys=remove_keys)
        for right in purpose.rights
    }
    assert asked == granted(*files)


@pytest.mark.parametrize("remove_keys", [False, True])
def test_no_right_is_both_needed_and_too_much(remove_keys: bool) -> None:
    needed = {
        right
        for purpose in rights.purposes(LOCATION, ca_secret="mpijob-webhook-ca", remove_keys=remove_keys)
        for right in purpose.rights
    }
    assert not needed & set(rights.excess(LOCATION, remove_keys=remove_keys)) - {Right("delete", "", "secrets")}
    assert (Right("delete", "", "secrets") in rights.excess(LOCATION, remove_keys=True)) is False
