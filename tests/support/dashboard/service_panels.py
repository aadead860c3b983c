"""What tells whether the service does its work: time and load, what it knows of the cluster, and what it keeps."""

from typing import Final

from tests.support.dashboard.queries import HOOK, P, Panel, Query, Row, each, in_all, quantile

SERVICE: Final = Row(
    "Service",
    (
        Panel(
            "Time of a review",
            "Half of them, and all but one in a hundred.",
            (
                Query(quantile(0.5, P + "review_duration_seconds", "webhook"), "{{webhook}} half"),
                Query(quantile(0.99, P + "review_duration_seconds", "webhook"), "{{webhook}} 99 %"),
            ),
            "s",
        ),
        Panel(
            "What the API server waits",
            "All but one call in a hundred, network included. It needs the API server's own metrics.",
            (
                Query(
                    quantile(0.99, "apiserver_admission_webhook_admission_duration_seconds", "name", HOOK), "{{name}}"
                ),
            ),
            "s",
        ),
        Panel(
            "Without a verdict",
            "Reviews turned away, given up, failed, or without an answer of the cluster; requests that are none; "
            "connections refused. In a second.",
            (
                *(
                    Query(f"sum(rate({P}{name}_total[$__rate_interval]))", text)
                    for name, text in (
                        ("shed", "turned away"),
                        ("deadline_exceeded", "given up"),
                        ("internal_errors", "failed"),
                        ("cluster_errors", "cluster silent"),
                    )
                ),
                Query(each(P + "bad_requests_total", "code", minutes=False), "HTTP {{code}}", empty="nobody sends one"),
                Query(each(P + "connections_refused_total", "reason", minutes=False), "connection: {{reason}}"),
                Query(f"sum(rate({P}log_lines_dropped_total[$__rate_interval]))", "log lines dropped"),
            ),
            "reqps",
        ),
        Panel(
            "At work",
            "Reviews and connections of each replica.",
            (
                Query(f"{P}in_flight", "reviews {{pod}}"),
                Query(f"{P}connections", "connections {{pod}}"),
            ),
        ),
        Panel(
            "Processor",
            "Cores that each replica uses.",
            (
                Query(
                    "rate(process_cpu_seconds_total[$__rate_interval]) and on (pod, instance) " + P + "build_info",
                    "{{pod}}",
                ),
            ),
        ),
        Panel(
            "Memory",
            "Resident, of each replica.",
            (Query("process_resident_memory_bytes and on (pod, instance) " + P + "build_info", "{{pod}}"),),
            "bytes",
        ),
    ),
)

CLUSTER: Final = Row(
    "What is known of the cluster, and policies",
    (
        Panel(
            "Caches",
            "Kinds of objects, how many of them every replica knows, and those that cannot be read. What is not "
            "installed is not known.",
            (
                Query(f"count(min by (kind) ({P}cache_synced))", "all"),
                Query(f"sum(min by (kind) ({P}cache_synced))", "known"),
                Query(
                    f"max by (kind) ({P}cache_faulty) > 0", "cannot be read: {{kind}}", empty="every kind can be read"
                ),
            ),
        ),
        Panel(
            "Last heard of",
            "The oldest kinds, of all replicas. A quiet one is asked about every 90 s; at 300 s it is unknown.",
            (Query(f"topk(5, max by (kind) ({P}cache_age_seconds and {P}cache_synced == 1))", "{{kind}}"),),
            "s",
        ),
        Panel(
            "Objects",
            "In the largest caches.",
            (Query(f"topk(8, max by (kind) ({P}cache_objects))", "{{kind}}"),),
        ),
        Panel(
            "Lists and watches",
            "In a minute: sent, ended and why, and questions of rules without an answer.",
            (
                Query(f"60 * sum(rate({P}cache_requests_total[$__rate_interval]))", "sent"),
                Query(each(P + "cache_restarts_total", "reason"), "ended: {{reason}}"),
                Query(f"topk(5, {each(P + 'cache_unknown_answers_total', 'kind')})", "unknown: {{kind}}"),
            ),
            "cpm",
        ),
        Panel(
            "Policies",
            "ConfigMaps by what is in force of them, how many different policies replicas have, and replicas that "
            "cannot read them.",
            (
                Query(f"max by (state) ({P}policy_documents)", "{{state}}"),
                Query(f"count(count by (hash) ({P}policy_info))", "different"),
                Query(f"sum({P}policies_unread)", "unread"),
            ),
        ),
        Panel(
            "Changes of policies",
            "In the time that is looked at: what was submitted, and how often a replica took new ones.",
            (
                Query(in_all(P + "policy_reviews_total", "decision"), "submitted: {{decision}}"),
                Query(in_all(P + "policy_reloads_total", "result"), "taken: {{result}}"),
            ),
            kind="bars",
        ),
    ),
)

BESIDE: Final = Row(
    "Certificates, keys, quotas and companions",
    (
        Panel(
            "Certificates end in",
            "They are renewed long before.",
            (Query(f"min by (cert) ({P}cert_expiry_timestamp_seconds) - time()", "{{cert}}"),),
            "s",
        ),
        Panel(
            "Certificate notices",
            "What happened to them since each replica began, and caBundles that do not trust what is served.",
            (
                Query(f"sum by (reason) ({P}cert_notices_total)", "{{reason}}"),
                Query(f"max({P}ca_bundles_untrusting)", "caBundles"),
                Query(
                    f"max by (concern) ({P}configuration_concerns) > 0",
                    "{{concern}}",
                    empty="the configurations are as they should be",
                ),
            ),
        ),
        Panel(
            "SSH keys",
            "Ready for new jobs, jobs that wait for one, and made in a minute.",
            (
                Query(f"sum({P}ssh_keys_ready)", "ready"),
                Query(f"sum({P}ssh_keys_waiting)", "waited for"),
                Query(each(P + "ssh_key_duration_seconds_count", "algorithm"), "made: {{algorithm}}"),
            ),
        ),
        Panel(
            "Wait for an SSH key",
            "All but one job in a hundred, and how long making one takes.",
            (
                Query(quantile(0.99, P + "ssh_key_wait_seconds", "algorithm"), "wait: {{algorithm}}"),
                Query(quantile(0.99, P + "ssh_key_duration_seconds", "algorithm"), "making: {{algorithm}}"),
            ),
            "s",
        ),
        Panel(
            "Quotas",
            "Verdicts on quotas that all replicas share, in a minute.",
            (Query(each(P + "quota_ledger_total", "outcome"), "{{outcome}}"),),
            "cpm",
            "stacked",
        ),
        Panel(
            "Companions",
            "Objects that they should have looked after, and those where they failed. Every replica looks after all.",
            (
                Query(f"max by (companion) ({P}companion_waiting)", "{{companion}} waiting"),
                Query(f"max by (companion) ({P}companion_failing)", "{{companion}} failing"),
            ),
        ),
        Panel(
            "Last audit",
            "Since each replica last judged all jobs that exist, and how long that took. The next one comes after ten "
            "minutes, or after ten times as long.",
            (
                Query(f"max by (pod) ({P}audit_age_seconds)", "since: {{pod}}"),
                Query(f"max by (pod) ({P}audit_duration_seconds)", "took: {{pod}}"),
            ),
            "s",
        ),
        Panel(
            "Work of companions",
            "In a minute: objects looked after, and calls of the API server.",
            (
                Query(each(P + "companion_reconciles_total", "companion, result"), "{{companion}} {{result}}"),
                Query(each(P + "companion_requests_total", "companion"), "{{companion}} calls"),
            ),
            "cpm",
        ),
    ),
)
