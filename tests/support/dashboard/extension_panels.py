"""What administrators add: own rules and plug-ins."""

from typing import Final

from tests.support.dashboard.queries import P, Panel, Query, Row, each

EXTENSIONS: Final = Row(
    "Own rules and plug-ins",
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
    ),
)
