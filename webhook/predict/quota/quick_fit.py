"""Checks quickly which of many jobs certainly fit into the free part of the quotas."""

from collections.abc import Iterable

from webhook.api.pod_resources import Amounts
from webhook.api.quantity import Quantity
from webhook.api.quota_scopes import Scope
from webhook.cluster.resources.reservations import Reservation
from webhook.cluster.resources.resource_quotas import ResourceQuota
from webhook.kit.context import Context
from webhook.predict.quota.assessment import namespace_quotas
from webhook.predict.quota.fit import Load, charged
from webhook.predict.quota.promised_usage import Promises

Limits = dict[str, tuple[Amounts, tuple[Scope, ...]]]
"""By quota name: the hard limits, and the scopes."""


class Room:
    """The amounts of a namespace's quotas that are certainly free. All promises are added up once, at the start."""

    def __init__(self, ctx: Context) -> None:
        self._quotas = namespace_quotas(ctx)
        promised = Promises.of(ctx, self._quotas).at_most(self._quotas)
        self._promised = {quota.name: dict(promised[quota.name]) for quota in self._quotas}
        self.limits = limits(self._quotas)

    def holds(self, reservation: Reservation) -> bool:
        """True if the job certainly fits.

        If the API server repeats the review of a job, the earlier reservation of the job counts too.
        """
        loads = _loads(reservation)
        return all(
            (used := quota.used.get(name)) is not None
            and used + self._promised[quota.name].get(name, 0) + amount <= quota.hard[name]
            for quota in self._quotas
            for name, amount in charged(quota, loads).items()
        )

    def promise(self, reservation: Reservation) -> None:
        loads = _loads(reservation)
        for quota in self._quotas:
            promised = self._promised[quota.name]
            for name, amount in charged(quota, loads).items():
                promised[name] = Quantity(promised.get(name, 0) + amount)


def limits(quotas: Iterable[ResourceQuota]) -> Limits:
    return {quota.name: (quota.hard, quota.scopes) for quota in quotas}


def _loads(reservation: Reservation) -> list[Load]:
    loads = [(pods.count, charge) for pods in reservation.pods for charge in pods.charges]
    return [*loads, *((1, charge) for charge in reservation.objects)]
