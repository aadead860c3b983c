"""Replicas with self-managed certificates, and the notices that they send to a listener."""

from random import Random

from certs.rotation import RotationSettings
from certs.self_managed import SelfManaged
from tests.support.ca_store import DAY, Clock, Cluster
from tests.support.trust import accepts

HOST = "webhook.training.svc"
SETTINGS = RotationSettings(name="test CA", ca_lifetime=90 * DAY, leaf_lifetime=12 * DAY)


class Told(list):
    """A list of notices. `reasons` returns the reasons of the notices since its last call."""

    def reasons(self):
        reasons = [notice.reason for notice in self]
        self.clear()
        return reasons


def replica(cluster, clock, *, told=None, settings=SETTINGS, hosts=(HOST,), **kwargs):
    notices = Told() if told is None else told
    kwargs |= {"clock": clock, "listener": notices.append, "random": Random(1)}
    return SelfManaged(cluster, hosts, settings=settings, **kwargs)


async def ready(**kwargs):
    """A healthy cluster, its clock, its only replica, and the notices."""
    clock, notices = Clock(), Told()
    cluster = Cluster(**kwargs)
    server = replica(cluster, clock, told=notices)
    await server.reconcile()
    notices.clear()
    return cluster, clock, server, notices


def accepted(cluster, server, now):
    """The objects whose caBundles trust the leaf certificate."""
    return {
        name
        for name, pems in cluster.bundles.items()
        if all(accepts(pem, server.leaf.certificate_pem, host=HOST, now=now) for pem in pems)
    }


EVERY = {"validating", "mutating"}
