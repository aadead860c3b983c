"""The API for plug-ins. Names, fields and parameters do not change before the next major version.

The rest of `webhook` is not stable: it may change in any version.
"""

from webhook.api.mpijob import LAUNCHER, WORKER, MPIJob, replica_path
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.cluster.view import ABSENT, UNKNOWN, Answer
from webhook.injections import Caution, Note, injection
from webhook.kit.advice_bounds import Admitted, Span
from webhook.kit.context import Context
from webhook.kit.forms import ITEM, ComesBack, Form, a_text, equal, in_launcher, in_templates, in_worker
from webhook.kit.importance import Importance
from webhook.kit.patch import PatchBuilder, Path, template_path
from webhook.kit.settings import Action, InjectionSettings, RuleSettings, Settings, WarningRuleSettings
from webhook.rules import CauseReason, Degree, Violation, rule

__all__ = [
    "ABSENT", "ITEM", "LAUNCHER", "NAMESPACES", "UNKNOWN", "WORKER", "Action", "Admitted", "Answer", "CauseReason",
    "Caution", "ComesBack", "Context", "Degree", "Form", "Importance", "InjectionSettings", "MPIJob", "Namespace",
    "Note", "PatchBuilder", "Path", "RuleSettings", "Settings", "Span", "Violation", "WarningRuleSettings", "a_text",
    "equal", "in_launcher", "in_templates", "in_worker", "injection", "replica_path", "rule", "template_path",
]  # fmt: skip
