"""What the annotations of jobs ask for in vain: rules to be exempt from, and injections to skip, that there are not."""

from typing import Final

from webhook import injections, rules
from webhook.api import annotations, mpijob
from webhook.client.calls import ApiError, Client
from webhook.client.objects import KubernetesObject, listed
from webhook.installation.doctor.facts import AskedInVain
from webhook.kit.own_rules import PREFIX, is_own
from webhook.policy.exemptions import ASKED, EVERY_RULE, REQUIRED_INJECTION

KNOWN: Final = {
    ASKED: frozenset([*rules.REGISTRY, REQUIRED_INJECTION, EVERY_RULE, PREFIX]),
    annotations.SKIP: frozenset(injections.REGISTRY),
}


async def in_vain(api: Client) -> list[AskedInVain]:
    """Of every job that is stored; none where the cluster does not know MPIJobs."""
    try:
        jobs = await listed(api, f"/apis/{mpijob.API_VERSION}/mpijobs", metadata_only=True)
    except ApiError as error:
        if error.status == 404:
            return []
        raise
    return [found for job in jobs for found in _of(job)]


def _of(job: KubernetesObject) -> list[AskedInVain]:
    metadata = job["metadata"]
    texts = metadata.get("annotations") or {}
    ids = {key: [part.strip() for part in texts.get(key, "").split(",") if part.strip()] for key in KNOWN}
    unknown = {
        key: [each for each in dict.fromkeys(found) if each not in KNOWN[key] and not is_own(each)]
        for key, found in ids.items()
    }
    name = f"{metadata['namespace']}/{metadata['name']}"
    return [AskedInVain(name, key, found) for key, found in unknown.items() if found]
