"""Which pods, claims and other objects are within a scope."""

import pytest

from webhook.api.quota_scopes import ClaimTraits, ObjectTraits, PodTraits, Scope, Traits
from webhook.cluster.resources.resource_quotas import ResourceQuota

UNKNOWN = PodTraits(best_effort=None, priority_class=None)


@pytest.mark.parametrize(
    ("scope", "traits", "within"),
    [
        (Scope("Terminating"), PodTraits(terminating=True), True),
        (Scope("Terminating"), PodTraits(), False),
        (Scope("NotTerminating"), PodTraits(terminating=True), False),
        (Scope("NotTerminating"), PodTraits(), True),
        (Scope("BestEffort"), PodTraits(best_effort=True), True),
        (Scope("BestEffort"), PodTraits(), False),
        (Scope("BestEffort"), UNKNOWN, False),
        (Scope("NotBestEffort"), PodTraits(), True),
        (Scope("NotBestEffort"), PodTraits(best_effort=True), False),
        (Scope("NotBestEffort"), UNKNOWN, False),
        (Scope("CrossNamespacePodAffinity"), PodTraits(cross_namespace=True), True),
        (Scope("CrossNamespacePodAffinity"), PodTraits(), False),
        (Scope("PriorityClass"), PodTraits(priority_class="high"), True),
        (Scope("PriorityClass"), PodTraits(), False),
        (Scope("PriorityClass", "In", ("high", "low")), PodTraits(priority_class="high"), True),
        (Scope("PriorityClass", "In", ("low",)), PodTraits(priority_class="high"), False),
        (Scope("PriorityClass", "In", ("",)), PodTraits(), False),
        (Scope("PriorityClass", "NotIn", ("low",)), PodTraits(priority_class="high"), True),
        (Scope("PriorityClass", "NotIn", ("high",)), PodTraits(priority_class="high"), False),
        (Scope("PriorityClass", "NotIn", ("high",)), PodTraits(), True),
        (Scope("PriorityClass", "NotIn", ("high",)), UNKNOWN, False),
        (Scope("PriorityClass", "DoesNotExist"), PodTraits(), True),
        (Scope("PriorityClass", "DoesNotExist"), PodTraits(priority_class="high"), False),
        (Scope("PriorityClass", "DoesNotExist"), UNKNOWN, False),
        (Scope("VolumeAttributesClass"), PodTraits(), False),
        (Scope("VolumeAttributesClass", "DoesNotExist"), PodTraits(), False),
        (Scope("SomethingNew"), PodTraits(), False),
        (Scope("VolumeAttributesClass"), ClaimTraits("fast"), True),
        (Scope("VolumeAttributesClass"), ClaimTraits(), False),
        (Scope("VolumeAttributesClass", "NotIn", ("fast",)), ClaimTraits(), True),
        (Scope("NotTerminating"), ClaimTraits("fast"), False),
        (Scope("NotTerminating"), ObjectTraits(), False),
        (Scope("VolumeAttributesClass", "DoesNotExist"), ObjectTraits(), False),
    ],
)
def test_scope(scope: Scope, traits: Traits, within: bool) -> None:
    assert traits.meets(scope) is within
    assert ResourceQuota("ns", "q", {}, {}, (scope,)).counts(traits) is within


@pytest.mark.parametrize("traits", [PodTraits(), UNKNOWN, ClaimTraits(), ObjectTraits()])
def test_without_a_scope_everything_counts(traits: Traits) -> None:
    assert ResourceQuota("ns", "q", {}, {}).counts(traits)


def test_every_scope_has_to_be_met() -> None:
    quota = ResourceQuota("ns", "q", {}, {}, (Scope("NotTerminating"), Scope("PriorityClass")))
    assert quota.counts(PodTraits(priority_class="high"))
    assert not quota.counts(PodTraits(priority_class="high", terminating=True))
    assert not quota.counts(PodTraits())
