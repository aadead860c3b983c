from urllib.error import HTTPError

import pytest

from webhook.server.ops import Readiness

READY = "[+]policy ok\n[+]cluster ok\n[+]certificate ok\n[+]serving ok\nreadyz check passed\n"


def test_readiness_needs_every_check():
    readiness = Readiness("policy", "serving")
    assert not readiness.ready
    assert readiness.report() == "[-]policy failed: not yet\n[-]serving failed: not yet\nreadyz check failed\n"
    readiness.passes("policy")
    assert not readiness.ready
    readiness.passes("serving")
    assert readiness.ready
    assert readiness.report() == "[+]policy ok\n[+]serving ok\nreadyz check passed\n"
    readiness.fails("serving", "draining")
    assert not readiness.ready
    assert readiness.report() == "[+]policy ok\n[-]serving failed: draining\nreadyz check failed\n"


def test_job_metrics_are_empty_if_they_are_not_enabled(shared):
    assert shared.ops("/metrics/jobs") == ""


def test_health_and_readiness_are_served_over_http(shared):
    assert shared.ops("/healthz") == "ok\n"
    assert shared.ops("/readyz") == READY


def test_unready_service_answers_503_and_is_still_healthy(shared):
    shared.service.readiness.fails("serving", "a reason")
    with pytest.raises(HTTPError) as error:
        shared.ops("/readyz")
    assert error.value.code == 503
    assert b"[-]serving failed: a reason" in error.value.read()
    assert shared.ops("/healthz") == "ok\n"
    shared.service.readiness.passes("serving")


def test_metrics_are_served_over_http(shared):
    text = shared.ops("/metrics")
    assert "mpijob_webhook_in_flight 0.0\n" in text
    assert 'mpijob_webhook_cert_expiry_timestamp_seconds{cert="serving"} ' in text
    assert 'mpijob_webhook_build_info{python="' in text
    assert 'mpijob_webhook_policy_info{hash="' in text
    assert "process_resident_memory_bytes " in text


@pytest.mark.parametrize("path", ["/", "/validate-mpijob", "/debug"])
def test_other_paths_return_404(shared, path):
    with pytest.raises(HTTPError) as error:
        shared.ops(path)
    assert error.value.code == 404
    error.value.close()


def test_checks_and_concerns_are_evaluated_on_each_request():
    readiness = Readiness("cluster")
    problems, concerns = ["nodes not read yet"], {}
    readiness.follow("cluster", lambda: problems[0])
    readiness.concerns_of(lambda: concerns)
    assert readiness.report() == "[-]cluster failed: nodes not read yet\nreadyz check failed\n"
    problems[0] = ""
    concerns["unknown-nodes"] = "nothing is known of nodes"
    assert readiness.ready
    assert readiness.report() == "[+]cluster ok\n[!]unknown-nodes: nothing is known of nodes\nreadyz check passed\n"
