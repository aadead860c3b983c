"""The metrics: their names, labels and meaning. The reference is generated from this table."""

from dataclasses import dataclass
from typing import Literal

PREFIX = "mpijob_webhook_"
# Seconds. The API server waits 30 at most, and a review takes about a millisecond.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric as the reference shows it."""

    name: str
    """As Prometheus sees it: with the suffix `_total` for a counter."""
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    """Their names."""
    help: str
    """What is measured, for operators."""
    read_on_scrape: bool = False
    """A counter of a package that knows no metrics: its value is read whenever the metrics are."""


METRICS = (
    Metric(
        PREFIX + "reviews_total",
        "counter",
        ("webhook", "operation", "decision", "dry_run"),
        "Reviews answered with a decision: allowed or denied.",
    ),
    Metric(
        PREFIX + "review_duration_seconds",
        "histogram",
        ("webhook",),
        "Time from a review's headers to its answer, whatever that is, the reading of its body included.",
    ),
    Metric(PREFIX + "connections", "gauge", (), "Connections to the review port now."),
    Metric(
        PREFIX + "connections_refused_total",
        "counter",
        ("reason",),
        "Connections turned away or cut off: full (there were too many), handshake (it "
        "failed or took too long), silent (no whole head came in time), head (it was too large, or not HTTP/1), ahead "
        "(more came than one request with a Content-Length), unread (the client did not read its reply), descriptors "
        "(none was left).",
    ),
    Metric(
        PREFIX + "log_lines_dropped_total",
        "counter",
        (),
        "Lines of the log that were dropped, the oldest first, because standard error was not read.",
    ),
    Metric(PREFIX + "in_flight", "gauge", (), "Reviews at work now."),
    Metric(PREFIX + "tasks", "gauge", (), "asyncio tasks now: if they grow from day to day, some never end."),
    Metric(
        PREFIX + "rule_results_total",
        "counter",
        ("rule", "action"),
        "Violations found, by rule and by what they led to: deny, warn or audit.",
    ),
    Metric(
        PREFIX + "own_rule_faults_total",
        "counter",
        ("rule",),
        "Reviews in which an own rule of the policy could not be evaluated, or took too long, by rule. Its onError says"
        " what became of the job; the log and the audit annotation rule-faults say what is wrong with the policy.",
    ),
    Metric(
        PREFIX + "refused_gpus_total",
        "counter",
        ("rule", "resource"),
        "GPUs and other accelerators that jobs asked for which were refused when they were created, dry runs left out. "
        "Each job counts once, with the worst of the rules that refused it, and again whenever it is tried again; at "
        "most 10,000 of a job.",
    ),
    Metric(
        PREFIX + "patch_ops_total",
        "counter",
        ("injection",),
        "Patch operations sent, by injection.",
    ),
    Metric(
        PREFIX + "deadline_exceeded_total",
        "counter",
        ("webhook",),
        "Reviews given up with 504 because the API server would not have waited for the answer.",
    ),
    Metric(
        PREFIX + "internal_errors_total",
        "counter",
        ("webhook",),
        "Reviews answered with 500 because of a fault in this service.",
    ),
    Metric(
        PREFIX + "shed_total",
        "counter",
        ("webhook",),
        "Reviews refused with 503 because too many like them were at work: large bodies, those that wait for the "
        "cluster or for an SSH key.",
    ),
    Metric(
        PREFIX + "cluster_errors_total",
        "counter",
        ("webhook",),
        "Reviews refused with 503 because the cluster did not answer a question that the verdict depends on.",
    ),
    Metric(PREFIX + "bad_requests_total", "counter", ("code",), "Requests that are not a review, by status code."),
    Metric(PREFIX + "policy_info", "gauge", ("hash",), "1 for the policies in force, by a hash of their content."),
    Metric(
        PREFIX + "policy_documents",
        "gauge",
        ("state",),
        "Policy ConfigMaps by what is in force of them: current, last-good (the newest is broken) or unusable.",
    ),
    Metric(
        PREFIX + "policies_unread",
        "gauge",
        (),
        "1 while the policy ConfigMaps cannot be read: those read before, the last good ones, or the built-in defaults "
        "are in force; /readyz says which.",
    ),
    Metric(
        PREFIX + "policy_reloads_total",
        "counter",
        ("result",),
        "Reloads of the policy ConfigMaps: good, or broken when one of them is.",
    ),
    Metric(
        PREFIX + "conversions_total",
        "counter",
        ("version", "outcome"),
        "With --conversion, jobs by the version that they were wanted in: converted, refused (somebody sends what is "
        "no job), or stand-in (it is stored, and is no job: v2beta1 shows one that is suspended and has no pods).",
    ),
    Metric(
        PREFIX + "policy_reviews_total", "counter", ("decision",), "Reviews of policy ConfigMaps: allowed or denied."
    ),
    Metric(
        PREFIX + "exemptions_total",
        "counter",
        ("rule",),
        "Violations excused by an exemption, by rule.",
    ),
    Metric(PREFIX + "ssh_keys_ready", "gauge", (), "SSH key pairs that are ready for new jobs."),
    Metric(PREFIX + "ssh_keys_waiting", "gauge", (), "Reviews that wait for an SSH key pair to be made."),
    Metric(
        PREFIX + "ssh_key_duration_seconds",
        "histogram",
        ("algorithm",),
        "Time to make an SSH key pair, ahead or asked for; its count is the pairs made.",
    ),
    Metric(
        PREFIX + "ssh_key_wait_seconds",
        "histogram",
        ("algorithm",),
        "Time that a review waited for its SSH key pair, next to nothing when one was ready.",
    ),
    Metric(PREFIX + "cache_synced", "gauge", ("kind",), "1 while the cache of this kind of object is complete."),
    Metric(
        PREFIX + "cache_faulty",
        "gauge",
        ("kind",),
        "1 while nothing is known of this kind of object because it cannot be read, a missing right included; 0 where "
        "it is not installed.",
    ),
    Metric(PREFIX + "cache_objects", "gauge", ("kind",), "Objects in the cache."),
    Metric(PREFIX + "cache_age_seconds", "gauge", ("kind",), "Seconds since the cache of this kind was last complete."),
    Metric(
        PREFIX + "cache_unknown_answers_total",
        "counter",
        ("kind",),
        "How often a rule asked about this kind and the answer was unknown; such a rule does not deny.",
        read_on_scrape=True,
    ),
    Metric(
        PREFIX + "cache_requests_total",
        "counter",
        ("kind",),
        "Lists and watches sent to the API server.",
        read_on_scrape=True,
    ),
    Metric(
        PREFIX + "cache_restarts_total",
        "counter",
        ("kind", "reason"),
        "Lists and watches that ended, and why.",
        read_on_scrape=True,
    ),
    Metric(
        PREFIX + "cert_expiry_timestamp_seconds",
        "gauge",
        ("cert",),
        "When a certificate expires, in seconds since 1970: serving, or ca where this service has its own.",
    ),
    Metric(
        PREFIX + "configuration_concerns",
        "gauge",
        ("concern",),
        "1 while something is wrong with the webhook configurations or the rights of the service, by its name in the "
        "runbook; looked at each minute.",
    ),
    Metric(
        PREFIX + "ca_bundles_untrusting",
        "gauge",
        (),
        "Objects with a caBundle that does not trust what is served, with a CA of the service's own: their calls fail.",
    ),
    Metric(
        PREFIX + "cert_notices_total",
        "counter",
        ("reason",),
        "What happened to the certificates, by the reason in the Event about it.",
    ),
    Metric(
        PREFIX + "quota_ledger_total",
        "counter",
        ("outcome",),
        "Verdicts on quotas shared by all replicas: reserved, not-reserved, full (admitted, not reserved for want "
        "of room), late (504) or unavailable (the verdict is then that of this replica's cache).",
    ),
    Metric(
        PREFIX + "companion_reconciles_total",
        "counter",
        ("companion", "result"),
        "How often a companion looked after an object: done, or failed and to be tried again.",
        read_on_scrape=True,
    ),
    Metric(
        PREFIX + "companion_requests_total",
        "counter",
        ("companion",),
        "Calls of the API server by a companion, without lists and watches.",
        read_on_scrape=True,
    ),
    Metric(
        PREFIX + "companion_waiting",
        "gauge",
        ("companion",),
        "Objects that a companion should have looked after by now, those that it is at included.",
    ),
    Metric(
        PREFIX + "companion_failing",
        "gauge",
        ("companion",),
        "Objects for which a companion failed when it last tried; it goes on trying.",
    ),
    Metric(
        PREFIX + "deadline_events_total",
        "counter",
        ("outcome",),
        "Notices about the time of jobs: told (this replica made the Event), or known (it was there).",
        read_on_scrape=True,
    ),
    Metric(
        PREFIX + "plugins",
        "gauge",
        ("plugin", "version", "state"),
        "1 for each plug-in that is named: in force, or broken (what else it has is in force); /readyz says why.",
    ),
    Metric(
        PREFIX + "plugin_failures_total",
        "counter",
        ("kind", "entry"),
        "How often a plug-in's rule or injection failed in a review, which then went on without it.",
        read_on_scrape=True,
    ),
    Metric(PREFIX + "build_info", "gauge", ("version", "python"), "1 for the version that runs."),
)
