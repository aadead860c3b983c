"""What platform teams look at: verdicts, GPUs and jobs; the service itself is in `service_panels`."""

from typing import Final

from tests.support.dashboard.extension_panels import EXTENSIONS
from tests.support.dashboard.queries import CERTAIN, IN, REFUSED, J, P, Panel, Query, Row, each, in_all, quantile
from tests.support.dashboard.service_panels import BESIDE, CLUSTER, SERVICE

VERDICTS: Final = Row(
    "Verdicts",
    (
        Panel(
            "Reviews",
            "Answered with a decision, by hook.",
            (Query(each(P + "reviews_total", "webhook, decision", minutes=False), "{{webhook}} {{decision}}"),),
            "reqps",
            "stacked",
        ),
        Panel(
            "Refused, by rule",
            "Violations that refused a job, in a minute. A job may have several.",
            (Query(each(P + "rule_results_total", "rule", 'action="deny"'), "{{rule}}"),),
            "cpm",
            "stacked",
        ),
        Panel(
            "Warned, by rule",
            "Violations that users read as warnings, in a minute.",
            (Query(each(P + "rule_results_total", "rule", 'action="warn"'), "{{rule}}"),),
            "cpm",
            "stacked",
        ),
        Panel(
            "Verdicts, by namespace",
            "MPIJobs created or changed, in a minute, dry runs left out.",
            (Query(each(P + "namespace_reviews_total", "namespace, decision", IN), "{{namespace}} {{decision}}"),),
            "cpm",
            "stacked",
        ),
        Panel(
            "Refused, by namespace and rule",
            "In the time that is looked at, dry runs left out.",
            (
                Query(
                    f"topk(15, {in_all(P + 'namespace_rule_results_total', 'namespace, rule', REFUSED)})",
                    "{{namespace}} {{rule}}",
                ),
            ),
            kind="bars",
        ),
        Panel(
            "Injected and excused",
            "Patch operations by injection, and violations that an exemption excused, in a minute.",
            (
                Query(each(P + "patch_ops_total", "injection"), "{{injection}}"),
                Query(each(P + "exemptions_total", "rule"), "excused: {{rule}}"),
            ),
            "cpm",
        ),
    ),
)

GPUS: Final = Row(
    "GPUs",
    (
        Panel(
            "GPUs refused, by rule",
            "What refused jobs asked for, in the time that is looked at. Who tries again is counted again.",
            (Query(in_all(P + "refused_gpus_total", "rule, resource"), "{{rule}} {{resource}}"),),
            kind="bars",
        ),
        Panel(
            "GPUs saved",
            "Of those: asked for by jobs that could not have run in whole or would have failed, and kept back by "
            "policy. For how long they would have been held nobody knows.",
            (
                Query(in_all(P + "refused_gpus_total", "", f'rule=~"{CERTAIN}"'), "by jobs that would not have run"),
                Query(in_all(P + "refused_gpus_total", "", f'rule!~"{CERTAIN}"'), "kept back by policy"),
            ),
            kind="bars",
        ),
        Panel(
            "GPUs asked for and in use",
            "Of jobs that have not ended. What is asked for and not in use waits.",
            (
                Query(f"sum(max by (namespace, resource) ({J}gpus_requested{{{IN}}}))", "asked for"),
                Query(
                    f"sum by (namespace) (max by (namespace, resource) ({J}gpus_in_use{{{IN}}}))",
                    "in use: {{namespace}}",
                ),
            ),
        ),
    ),
)

JOBS: Final = Row(
    "Jobs",
    (
        Panel(
            "Running and waiting",
            "MPIJobs that have not ended.",
            (
                Query(f"{J}running_total{{{IN}}}", "running: {{namespace}}"),
                Query(f"{J}queued_total{{{IN}}}", "waiting: {{namespace}}"),
            ),
        ),
        Panel(
            "Created, succeeded, failed",
            "In a minute, as the recording rules have it.",
            (
                Query(f"60 * sum(namespace:{J}created:rate5m{{{IN}}})", "created"),
                Query(f"60 * sum(namespace:{J}succeeded:rate5m{{{IN}}})", "succeeded"),
                Query(f"60 * sum by (reason) (namespace_reason:{J}failed:rate5m{{{IN}}})", "failed: {{reason}}"),
            ),
            "cpm",
        ),
        Panel(
            "Wait and run",
            "Nine of ten jobs began within, and half of them ended within.",
            (
                Query(quantile(0.9, J + "queue_seconds", "namespace", IN, of="max"), "wait: {{namespace}}"),
                Query(quantile(0.5, J + "duration_seconds", "namespace", IN, of="max"), "run: {{namespace}}"),
            ),
            "s",
        ),
        Panel(
            "Time that is left",
            "The least that a job of the namespace has before its deadline.",
            (Query(f"min by (namespace) ({J}deadline_remaining_seconds{{{IN}}})", "{{namespace}}"),),
            "s",
        ),
        Panel(
            "Jobs that break the policy of today",
            "MPIJobs that have not ended, as if they were created now: by the rule that they break, and all "
            "that would be refused.",
            (
                Query(
                    f"max by (namespace, rule, action) ({P}audit_violations{{{IN}}})",
                    "{{namespace}} {{rule}} {{action}}",
                ),
                Query(f"sum(max by (namespace) ({P}audit_refused{{{IN}}}))", "refused"),
            ),
        ),
        Panel(
            "Events about deadlines",
            "In the time that is looked at: made by one replica, or found there by another.",
            (Query(in_all(P + "deadline_events_total", "outcome"), "{{outcome}}"),),
            kind="bars",
        ),
    ),
)

ROWS: Final = (VERDICTS, GPUS, JOBS, SERVICE, CLUSTER, BESIDE, EXTENSIONS)
