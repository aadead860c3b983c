"""What administrators add and keep: own rules, plug-ins, and reviews that are recorded."""

from typing import Final

from tests.support.dashboard.queries import P, Panel, Query, Row, each

EXTENSIONS: Final = Row(
    "Own rules, plug-ins and records",
    (
        Panel(
            "Own rules that fail",
            "Reviews in a minute that an own rule could not judge, by rule.",
            (Query(each(P + "own_rule_faults_total", "rule"), "{{rule}}"),),
            "cpm",
        ),
        Panel(
            "Plug-ins",
            "Replicas that have each of them, and reviews in a minute that one failed in.",
            (
                Query(
                    f"sum by (plugin, version, state) ({P}plugins)",
                    "{{plugin}} {{version}} {{state}}",
                    empty="no plug-in is named",
                ),
                Query(each(P + "plugin_failures_total", "kind, entry"), "{{entry}} fails", empty="no plug-in failed"),
            ),
        ),
        Panel(
            "Recorded reviews",
            "With --record, in a minute: written, and left out for which reason.",
            (Query(each(P + "recorded_reviews_total", "outcome"), "{{outcome}}"),),
            "cpm",
            "stacked",
        ),
    ),
)
