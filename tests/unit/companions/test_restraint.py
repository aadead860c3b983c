"""What is undone again and again is done ever less often, and after a quiet hour at once again."""

from webhook.companions.reconciler import FORGOTTEN, Restraint


def test_the_pause_grows_to_some_minutes() -> None:
    restraint, now, pauses = Restraint[str](), 0.0, []
    for _ in range(12):
        pause = restraint.wait("a", now)
        pauses.append(pause)
        now += pause
        assert restraint.wait("a", now) == 0
        restraint.note("a", now)
    assert pauses == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert restraint.wait("b", now) == 0


def test_it_forgets() -> None:
    restraint = Restraint[str]()
    for _ in range(5):
        restraint.note("a", 0)
    assert restraint.wait("a", 1) == 15
    restraint.note("a", FORGOTTEN + 1)
    assert restraint.wait("a", FORGOTTEN + 1) == 1
    restraint.forget("a")
    assert restraint.wait("a", FORGOTTEN + 1) == 0
