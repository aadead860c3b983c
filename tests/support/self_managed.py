"""Replicas with self-managed certificates, and the notices that they send to a listener."""

from random import Random

from certs.rotation import RotationSettings
from certs.self_managed import SelfManaged
from tests.support.ca_store import DAY, Clock, Cluster
from tests.support.trust import accepts

HOST = "webhook.training.svc"
SETTINGS = RotationSettings(name="test CA", ca_lifetime=90 * DAY, leaf_lifetime=12 * DAY)


class Told(list):
    """A list of notices, with a method for the reasons since the last call."""

    def reasons(self):
        reasons = [notice.reason for notice in self]
        self.clear()
        return reasons


def replica(cluster, clock, *, told=None, settings=SETTINGS, hosts=(HOST,), **kwargs):
    told = Told() if told is None else told
    return SelfManaged(cluster, hosts, settings=settings, clock=clock, listener=told.append, random=Random(1), **kwargs)


async def ready(**kwargs):
    """A healthy cluster, its clock, its only replica, and the notices."""
    clock, told = Clock(), Told()
    cluster = Cluster(**kwargs)
    one = replica(cluster, clock, told=told)
    await one.reconcile()
    told.clear()
    return cluster, clock, one, told


def accepted(cluster, one, now):
    """The objects whose caBundles trust the leaf certificate."""
    return {
        name
        for name, pems in cluster.bundles.items()
        if all(accepts(pem, one.leaf.certificate_pem, host=HOST, now=now) for pem in pems)
    }


EVERY = {"validating", "mutating"}
