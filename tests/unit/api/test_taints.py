import pytest

from webhook.api.pod import Toleration
from webhook.api.taints import Taint, tolerates, untolerated

GPU = Taint("gpu", "yes", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration("gpu", "Exists"), True),
        (Toleration("gpu", "Exists", effect="NoSchedule"), True),
        (Toleration("gpu", "Exists", effect="NoExecute"), False),
        (Toleration("gpu", "Equal", "yes"), True),
        (Toleration("gpu", None, "yes"), True),
        (Toleration("gpu", "", "yes", ""), True),
        (Toleration("gpu", None, "no"), False),
        (Toleration("gpu"), False),
        (Toleration("other", "Exists"), False),
        (Toleration(None, "Exists"), True),
        (Toleration("", "Exists", effect="NoSchedule"), True),
        (Toleration("gpu", "Gt", "1"), True),
    ],
)
def test_toleration_of_a_taint(toleration: Toleration, expected: bool) -> None:
    assert tolerates(toleration, GPU) is expected


def test_taints_that_repel_pods() -> None:
    spot, soft = Taint("spot", effect="NoExecute"), Taint("soft", effect="PreferNoSchedule")
    assert untolerated([soft], []) == []
    assert untolerated([soft, GPU, spot], []) == [GPU, spot]
    assert untolerated([soft, GPU, spot], iter([Toleration("gpu", "Exists")])) == [spot]
    assert untolerated([GPU, spot], [Toleration(None, "Exists")]) == []


def test_taint_as_text() -> None:
    assert str(GPU) == "gpu=yes:NoSchedule"
    assert str(Taint("spot", effect="NoExecute")) == "spot:NoExecute"
