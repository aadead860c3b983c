import pytest

from webhook.server.http_request import parse


@pytest.mark.parametrize(
    ("raw", "target"),
    [
        ("/mutate-mpijob", ("mutate", None)),
        ("/validate-mpijob?timeout=5s", ("validate", 5)),
        ("/validate-trainer?timeout=5s", ("trainer", 5)),
        ("/mutate-ssh-secret?timeout=10s", ("ssh-keys", 10)),
        ("/validate-policy", ("policy", None)),
        ("/elsewhere?x=1&timeout=5s", (None, 5)),
        ("", (None, None)),
        ("*", (None, None)),
    ],
)
def test_webhook_and_timeout_are_read_from_the_path(raw, target):
    assert parse(raw) == target


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("1.5s", 1.5),
        (".5s", 0.5),
        ("1m30s", 90),
        ("20%C2%B5s", 20e-6),
        ("7us", 7e-6),
        ("9ns", 9e-9),
        # The following texts are not valid durations.
        ("", None),
        ("5", None),
        ("s", None),
        ("5 s", None),
        ("-5s", None),
        ("0s", None),
        ("1e3s", None),
        ("NaNs", None),
        ("1d", None),
        ("%D9%A1s", None),  # an Arabic-Indic digit
        ("1s" * 17, None),
        ("9" * 8000 + "s", None),
    ],
)
def test_timeout_parameter_is_read_as_a_duration(text, seconds):
    assert parse(f"/mutate-mpijob?timeout={text}")[1] == pytest.approx(seconds)
