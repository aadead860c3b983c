"""What is told of the rest of a pod."""

from typing import Any

import pytest

from tests.support.pod_template import SPEC, told


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {
                "Worker.template.metadata.labels": {"a b": "c"},
                "Worker.template.metadata.annotations": {"a b": "c", "Team/Owner": "x"},
            },
            [
                (
                    'metadata.labels[a b]: its key contains " "; allowed are letters, digits, "-", "_" and ".". '
                    "Correct the key."
                ),
                (
                    'metadata.annotations[a b]: its key contains " "; allowed are letters, digits, "-", "_" and '
                    '".". Correct the key.'
                ),
            ],
        ),
        (
            {"Worker.template.metadata.annotations": {"a": "x" * 300000}},
            ["metadata.annotations: have 300,001 bytes, at most 262,144 are taken. Leave some out."],
        ),
        (
            {f"{SPEC}.activeDeadlineSeconds": 0},
            ["spec.activeDeadlineSeconds: is 0, at least 1 is taken. Correct the number."],
        ),
        (
            {f"{SPEC}.dnsPolicy": "None"},
            [("spec.dnsConfig.nameservers: is missing, but dnsPolicy is None. Name a server, or remove dnsPolicy.")],
        ),
        ({f"{SPEC}.dnsPolicy": "none"}, ['spec.dnsPolicy: "none" is not supported. Write None.']),
        (
            {
                f"{SPEC}.dnsConfig": {
                    "nameservers": ["a", "1.1.1.1", "fe80::1%eth0", "2.2.2.2"],
                    "searches": ["A", "."],
                    "options": [{"value": "1"}],
                }
            },
            [
                "spec.dnsConfig.nameservers: has 4 entries, at most 3 are taken. Leave the others out.",
                "spec.dnsConfig.options[0].name: is missing. Set it.",
                'spec.dnsConfig.nameservers[0]: "a" is not an IP address. Write it as 10.0.0.1.',
                'spec.dnsConfig.nameservers[2]: "fe80::1%eth0" is not an IP address. Write it as 10.0.0.1.',
                'spec.dnsConfig.searches[0]: "A" is not a domain. Correct the domain.',
            ],
        ),
        (
            {f"{SPEC}.dnsConfig": {"searches": ["a" * 200] * 11}},
            ["spec.dnsConfig.searches: has more than 2048 characters in all. Leave some out."],
        ),
        (
            {f"{SPEC}.hostAliases": [{"ip": "a", "hostnames": ["A"]}, {"ip": "010.0.0.1"}]},
            [
                'spec.hostAliases[0].ip: "a" is not an IP address. Write it as 10.0.0.1.',
                (
                    'spec.hostAliases[0].hostnames[0]: "A" contains "A"; allowed are lower case letters, digits, '
                    '"-" and ".". Correct the name.'
                ),
            ],
        ),
        (
            {f"{SPEC}.hostUsers": False, f"{SPEC}.hostPID": True, f"{SPEC}.shareProcessNamespace": True},
            [
                "spec.hostPID: does not go with hostUsers: false. Remove one of the two.",
                "spec.shareProcessNamespace: does not go with hostPID. Remove one of the two.",
            ],
        ),
        (
            {f"{SPEC}.nodeName": "A"},
            [
                (
                    'spec.nodeName: "A" contains "A"; allowed are lower case letters, digits, "-" and ".". Name '
                    "a node, or remove it."
                )
            ],
        ),
        (
            {f"{SPEC}.nodeName": "a", f"{SPEC}.schedulingGates": [{"name": "a"}, {"name": "a"}, {"name": "a b"}]},
            [
                "spec.nodeName: does not go with schedulingGates. Remove one of the two.",
                'spec.schedulingGates[1].name: "a" is there twice. Remove one of the two.',
                (
                    'spec.schedulingGates[2].name: "a b" contains " "; allowed are letters, digits, "-", "_" and '
                    '".". Correct the name.'
                ),
            ],
        ),
        (
            {f"{SPEC}.readinessGates": [{"conditionType": "a b"}]},
            [
                (
                    'spec.readinessGates[0].conditionType: "a b" contains " "; allowed are letters, digits, "-", '
                    '"_" and ".". Correct the name.'
                )
            ],
        ),
        (
            {
                f"{SPEC}.resourceClaims": [
                    {"name": "a"},
                    {"name": "a", "resourceClaimName": "A", "resourceClaimTemplateName": "b"},
                    {"name": "A", "resourceClaimName": "a"},
                ]
            },
            [
                (
                    "spec.resourceClaims[0]: names neither a claim nor a template. Set one of resourceClaimName "
                    "and resourceClaimTemplateName."
                ),
                'spec.resourceClaims[1].name: there is another resource claim "a". Rename one of the two.',
                (
                    "spec.resourceClaims[1]: names both a claim and a template. Set one of resourceClaimName and "
                    "resourceClaimTemplateName."
                ),
                (
                    'spec.resourceClaims[1].resourceClaimName: "A" contains "A"; allowed are lower case letters, '
                    'digits, "-" and ".". Correct the name.'
                ),
                (
                    'spec.resourceClaims[2].name: "A" contains "A"; allowed are lower case letters, digits and '
                    '"-". Rename the claim.'
                ),
            ],
        ),
        ({f"{SPEC}.preemptionPolicy": "never"}, ['spec.preemptionPolicy: "never" is not supported. Write Never.']),
    ],
)
def test_faults(changes: dict[str, Any], expected: list[str]) -> None:
    assert told(changes) == expected


@pytest.mark.parametrize(
    "changes",
    [
        {f"{SPEC}.dnsPolicy": "None", f"{SPEC}.dnsConfig": {"nameservers": ["10.0.0.10"]}},
        {f"{SPEC}.nodeName": ""},
        {"Worker.template": {}},
    ],
)
def test_good(changes: dict[str, Any]) -> None:
    assert told(changes) == []
