"""What is told of tolerations, affinity and spread."""

from typing import Any

import pytest

from tests.support.pod_template import SPEC, told

AFFINITY = f"{SPEC}.affinity"
SPREAD = f"{SPEC}.topologySpreadConstraints"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {f"{SPEC}.tolerations": [{"key": "a", "operator": "exists"}]},
            ['spec.tolerations[0].operator: "exists" is not supported. Write Exists.'],
        ),
        (
            {f"{SPEC}.tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
            [("spec.tolerations[0].value: does not go with operator Exists. Remove it, or use operator: Equal.")],
        ),
        (
            {f"{SPEC}.tolerations": [{"operator": "Equal", "value": "b"}]},
            [
                (
                    "spec.tolerations[0].operator: must be Exists where no key is set. Set the key, or operator: "
                    "Exists for every taint."
                )
            ],
        ),
        (
            {f"{SPEC}.tolerations": [{"key": "a b", "value": "b c", "effect": "noSchedule"}]},
            [
                'spec.tolerations[0].effect: "noSchedule" is not supported. Write NoSchedule.',
                (
                    'spec.tolerations[0].key: "a b" contains " "; allowed are letters, digits, "-", "_" and ".". '
                    "Correct the key."
                ),
                (
                    'spec.tolerations[0].value: "b c" contains " "; allowed are letters, digits, "-", "_" and '
                    '".". Correct the value.'
                ),
            ],
        ),
        (
            {f"{SPEC}.tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 3}]},
            [
                (
                    "spec.tolerations[0].effect: must be NoExecute where tolerationSeconds is set. Write "
                    "NoExecute, or remove tolerationSeconds."
                )
            ],
        ),
        (
            {f"{SPEC}.nodeSelector": {"a b": "c", "d": "e f"}},
            [
                (
                    'spec.nodeSelector[a b]: its key contains " "; allowed are letters, digits, "-", "_" and '
                    '".". Correct the key.'
                ),
                (
                    'spec.nodeSelector[d]: "e f" contains " "; allowed are letters, digits, "-", "_" and ".". '
                    "Correct the value."
                ),
            ],
        ),
        (
            {f"{AFFINITY}.nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}},
            [
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: "
                    "is empty. Set it."
                )
            ],
        ),
        (
            {
                f"{AFFINITY}.nodeAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "a", "operator": "In"},
                                    {"key": "a b", "operator": "Exists", "values": ["x"]},
                                    {"key": "a", "operator": "Gt", "values": ["1", "2"]},
                                    {"key": "a", "operator": "In", "values": ["b c"]},
                                ]
                            }
                        ]
                    }
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]."
                    "matchExpressions[0].values: "
                    "is empty, but In needs a value. Name the values."
                ),
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]."
                    "matchExpressions[1].values: "
                    "does not go with Exists. Remove it."
                ),
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]."
                    "matchExpressions[1].key: "
                    '"a b" contains " "; allowed are letters, digits, "-", "_" and ".". Correct the key.'
                ),
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]."
                    "matchExpressions[2].values: "
                    "must be one number for Gt. Name one number."
                ),
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]."
                    "matchExpressions[3].values[0]: "
                    '"b c" contains " "; allowed are letters, digits, "-", "_" and ".". Correct the value.'
                ),
            ],
        ),
        (
            {
                f"{AFFINITY}.nodeAffinity": {
                    PREFERRED: [
                        {
                            "weight": 101,
                            "preference": {
                                "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["A"]}]
                            },
                        }
                    ]
                }
            },
            [
                (
                    "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: is "
                    "101, at most 100 is taken. Correct the number."
                ),
                (
                    "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchF"
                    "ields[0].values[0]: "
                    '"A" contains "A"; allowed are lower case letters, digits, "-" and ".". Name a node.'
                ),
            ],
        ),
        (
            {
                f"{AFFINITY}.podAffinity": {
                    REQUIRED: [
                        {
                            "labelSelector": {"matchLabels": {"a": "b c"}},
                            "topologyKey": "a b",
                            "namespaces": ["A"],
                            "matchLabelKeys": ["x"],
                            "mismatchLabelKeys": ["x", "y z"],
                        }
                    ]
                }
            },
            [
                (
                    'spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: "a '
                    'b" contains " "; allowed are letters, digits, "-", "_" and ".". Name a label of nodes.'
                ),
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.match"
                    "Labels[a]: "
                    '"b c" contains " "; allowed are letters, digits, "-", "_" and ".". Correct the value.'
                ),
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaces[0]: "
                    '"A" contains "A"; allowed are lower case letters, digits and "-". Name a namespace.'
                ),
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].mismatchLabelKeys[1]: "
                    '"y z" contains " "; allowed are letters, digits, "-", "_" and ".". Correct the key.'
                ),
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys: "
                    '"x" is in mismatchLabelKeys too. Keep one of the two.'
                ),
            ],
        ),
        (
            {f"{AFFINITY}.podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": {"matchLabelKeys": ["x"]}}]}},
            [
                (
                    "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTer"
                    "m.topologyKey: "
                    "is missing. Set it."
                ),
                (
                    "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTer"
                    "m.matchLabelKeys: "
                    "needs a labelSelector. Add the labelSelector, or remove it."
                ),
            ],
        ),
        (
            {
                SPREAD: [
                    {"maxSkew": 0, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"},
                    {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"},
                    {"maxSkew": 1, "topologyKey": "b", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 1},
                ]
            },
            [
                "spec.topologySpreadConstraints[0].maxSkew: is 0, at least 1 is taken. Correct the number.",
                (
                    'spec.topologySpreadConstraints[1].topologyKey: "a" with DoNotSchedule is there twice. '
                    "Remove one of the two."
                ),
                (
                    "spec.topologySpreadConstraints[2].minDomains: needs whenUnsatisfiable: DoNotSchedule. "
                    "Remove it, or write DoNotSchedule."
                ),
            ],
        ),
    ],
)
def test_faults(changes: dict[str, Any], expected: list[str]) -> None:
    assert told(changes) == expected


@pytest.mark.parametrize(
    "changes",
    [
        {f"{SPEC}.tolerations": [{"operator": "Exists"}, {"key": "a", "operator": "Gt", "value": "3"}]},
        {
            f"{AFFINITY}.nodeAffinity": {
                PREFERRED: [
                    {
                        "weight": 1,
                        "preference": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]},
                    }
                ]
            }
        },
    ],
)
def test_good(changes: dict[str, Any]) -> None:
    assert told(changes) == []
