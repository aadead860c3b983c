"""Applies the fixes of messages to a job literally, like a user who reads only the messages."""

import copy
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import yaml

from webhook.admission.messages import SCHEMA, Finding
from webhook.cli.policy import job_fields

Json = Any
_PLACE: Final = re.compile(r"[^.\[\]]+|\[[^\]]*\]")


class UnclearFixError(AssertionError):
    """The fix does not contain a change that can be applied."""


def applied(job: Json, findings: Sequence[Finding]) -> Json:
    """The job with all fixes applied. Raises UnclearFixError for a fix without a change."""
    document = copy.deepcopy(job)
    remaining = sorted(findings, key=_order)
    creates_fields = False
    while remaining:
        renamed = {_renamed(finding) for finding in remaining} - {""}
        postponed = [
            finding
            for finding in remaining
            if finding.violation.path in renamed or not _apply(document, finding, creates_fields=creates_fields)
        ]
        assert len(postponed) < len(remaining) or not creates_fields, f"these fixes cannot be applied: {postponed}"
        creates_fields = len(postponed) == len(remaining)
        remaining = postponed
    return document


def _renamed(finding: Finding) -> str:
    """The new path of the field if the fix renames it; otherwise an empty text."""
    match = re.match(r"Rename it to (\S+?)[.,](?: |$)", finding.violation.fix)
    return f"{finding.violation.path.rpartition('.')[0]}.{match[1]}" if match else ""


def _apply(document: Json, finding: Finding, *, creates_fields: bool) -> bool:
    """Apply the fix. Returns False, without a change, if a different fix must first create the field."""
    place, keys = job_fields.place(document, finding.violation.path), _PLACE.findall(finding.violation.path)
    if len(place) < len(keys) - 1 and not creates_fields:
        return False
    violation = finding.violation
    for pattern, change in _FORMS:
        if match := re.match(pattern, violation.fix):
            try:
                change(document, violation.path, match)
            except LookupError:
                return False
            return True
    raise UnclearFixError(f"{violation.path}: {violation.message}. {violation.fix}")


def _order(finding: Finding) -> tuple[int, int]:
    """The sort key of a fix. Renames by the rule `schema` and moves come first: other messages name the new paths."""
    fix, depth = finding.violation.fix, len(finding.violation.path)
    phase = {"Move": 1, "Request": 3, "Rename": 4, "Remove": 4}.get(fix.split()[0], 2)
    phase = 0 if finding.rule == SCHEMA and fix.startswith("Rename") else phase
    phase = 5 if fix.startswith("Remove this mount and its volume") else phase
    return phase, -depth if phase == 4 else depth


def _value(text: str) -> Json:
    return yaml.safe_load(text.replace("<registry>/<name>:<tag>", "mpioperator/mpi-pi:openmpi"))


def _parts(document: Json, path: str) -> tuple[Json, Any]:
    """The mapping or list at the end of the path, and the last key, which may be absent."""
    place = job_fields.place(document, path)
    if len(place) < len(_PLACE.findall(path)):
        raise LookupError(path)
    target = document
    for key in place[:-1]:
        target = target[key]
    return target, place[-1]


def _write(document: Json, path: str, match: re.Match[str]) -> None:
    place = job_fields.place(document, path)
    exists = len(place) == len(_PLACE.findall(path))
    text = re.sub(r",? (?:in quotes|or|with your) ?.*$", "", match[1])
    if exists:
        target, key = _parts(document, path)
        target[key] = _value(text)
    else:
        job_fields.put(document, path, _value(text))


def _rename(document: Json, path: str, match: re.Match[str]) -> None:
    target, key = _parts(document, path)
    target[match[1]] = target.pop(key)


def _head(document: Json, path: str, match: re.Match[str]) -> None:
    del document[path]
    document[match[1]] = match[2]


def _remove(document: Json, path: str, _: re.Match[str]) -> None:
    target, key = _parts(document, path)
    del target[key]


def _move(document: Json, path: str, match: re.Match[str]) -> None:
    target, key = _parts(document, path)
    value = target.pop(key)
    for place in match[1].split(" and to "):
        job_fields.put(document, place, value)


def _set(document: Json, path: str, match: re.Match[str]) -> None:
    name, value = match[1], _value(re.split(r",? or |, ", match[2])[0])
    where = path if name == "it" or re.search(rf"(?:^|\.){re.escape(name)}$", path) else f"{path}.{name}"
    job_fields.put(document, where, value)


def _ranks(document: Json, _: str, match: re.Match[str]) -> None:
    container = document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    for words in (container.get("command"), container.get("args")):
        if words and "-np" in words:
            words[words.index("-np") + 1] = match[1]
        elif words:
            words[-1] = re.sub(r"(?<=-np )\S+", match[1], words[-1])


def _hostfile(document: Json, _: str, match: re.Match[str]) -> None:
    words = document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"]
    options = r"--?host(?:file|s)?|-H|orte_default_hostfile"
    at = next((index for index, word in enumerate(words) if re.fullmatch(options, str(word))), None)
    if at is None:
        words[-1] = re.sub(rf"(?:{options}) \S+", f"--hostfile {match[1]}", words[-1])
    else:
        words[at : at + 2] = [words[at] if words[at][0] != "-" else "--hostfile", match[1]]


def _replaced(document: Json, path: str, match: re.Match[str]) -> None:
    target, key = _parts(document, path)
    target[key] = [re.sub(rf"(?<!\S){match[1]}(?!\S)", match[2], word) for word in target[key]]


def _cores(document: Json, _: str, match: re.Match[str]) -> None:
    container = document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    for amounts in container["resources"].values():
        amounts["cpu"] = match[1]


def _by_shell(document: Json, path: str, _: re.Match[str]) -> None:
    target, key = _parts(document, path)
    target[key] = ["sh", "-c", *target[key]]


def _as_one_text(document: Json, path: str, _: re.Match[str]) -> None:
    container, key = _parts(document, path)
    container[key] = ["bash", "-c", " ".join([*container[key], *container.pop("args", [])])]


def _without_shell(document: Json, path: str, _: re.Match[str]) -> None:
    container, _ = _parts(document, path)
    container["command"] = [*container["command"], *container.pop("args", [])][1:]


def _split(document: Json, path: str, match: re.Match[str]) -> None:
    target, key = _parts(document, path)
    words = _value(f"[{match[1]}]")
    at = target[key].index(" ".join(words))
    target[key][at : at + 1] = words


def _volume(document: Json, path: str, match: re.Match[str]) -> None:
    pod, _ = _parts(document, path.partition(".containers[")[0] + ".containers")
    pod.setdefault("volumes", []).append(_value(match[1]))


def _replace(document: Json, path: str, match: re.Match[str]) -> None:
    _remove(document, path, match)
    job_fields.put(document, match[1], _value(match[2]))


def _edited(change: Callable[[list[str], str], list[str]]) -> Callable[[Json, str, re.Match[str]], None]:
    """A function that changes a command. `change` gets the command's words, and the text of the pattern's group."""

    def edit(document: Json, path: str, match: re.Match[str]) -> None:
        of_role = path.endswith("[Launcher]")
        target, key = _parts(document, f"{path}.template.spec.containers[0].command" if of_role else path)
        target[key] = change(target[key], match[1] if match.re.groups else "")

    return edit


def _from_word(words: list[str], first: str) -> list[str]:
    at = words.index(first)
    return [*words[:at], "bash", "-c", " ".join(words[at:])]


def _program(document: Json, path: str, match: re.Match[str]) -> None:
    target, key = _parts(document, path)
    target[key][0] = match[1]


def _without_mount(document: Json, path: str, _: re.Match[str]) -> None:
    pod, number = re.split(r"\.containers\[0\]\.volumeMounts\[(\d+)\]", path)[:2]
    name = job_fields.get(document, f"{pod}.containers[0].volumeMounts").pop(int(number))["name"]
    volumes = job_fields.get(document, f"{pod}.volumes")
    volumes[:] = [volume for volume in volumes if volume["name"] != name]


def _with_options(words: list[str], options: str) -> list[str]:
    """Replace the values of options in the words. `options` is a text such as `--nprow 2 --npcol 4`."""
    text = "\n".join(words)
    for option, value in re.findall(r"(\S+?)[= ](\S+)", options):
        text = re.sub(rf"(?<={option})([=\s])\S+", rf"\g<1>{value}", text)
    return text.split("\n")


def _without_words(words: list[str], removed: str) -> list[str]:
    return "\n".join(words).replace(removed.replace(" ", "\n") + "\n", "").replace(f"{removed} ", "").split("\n")


_FORMS: Final[tuple[tuple[str, Callable[[Json, str, re.Match[str]], None]], ...]] = (
    (
        r"Write (\S+-worker-0\.\S+)\.$",
        _edited(lambda words, name: [re.sub(r"(?<=ADDR=)localhost|\$\(hostname\)", name, word) for word in words]),
    ),
    (r"Remove this mount", _without_mount),
    (r"Remove (-.*)\.$", _edited(_without_words)),
    (r"Write (--(?!hostfile).*)\.$", _edited(_with_options)),
    (r"Move it to (\S+(?: and to \S+)*)\.$", _move),
    (r"(?:Rename it to|Write the field) (\S+?)[.,](?: |$)", _rename),
    (r"Write (kind|apiVersion): (\S+)\.$", _head),
    (r"Write its name, as (\S+)\.$", _write),
    (r"Add (\{.*\}) to volumes", _volume),
    (r"Remove it, and set (\S+) to (\d+)", _replace),
    (r'Put "sh", "-c" before it\.$', _by_shell),
    (r"Split it: (.*)\.$", _split),
    (r"Write all of it as one text", _as_one_text),
    (r"Start it without \w+\.$", _without_shell),
    (r"Write (/\S+/sshd|mpirun)\b", _program),
    (r"Write \$\((\w+)\)", _edited(lambda words, name: [re.sub(rf"\${name}$", f"$({name})", word) for word in words])),
    (r'Write the words from "(\w+)" on', _edited(_from_word)),
    (r"Start it with mpirun", _edited(lambda words, _: ["mpirun", *words])),
    (r"Run (/\S+ -\w+) instead", _edited(lambda _, program: program.split())),
    (r"Add (&& .*)\.$", _edited(lambda words, more: [*words[:-1], f"{words[-1]} {more}"])),
    (
        r"Write \| instead of >",
        _edited(lambda words, _: [re.sub(r" (?=(?:cd|export|mpirun) )", "\n", w) for w in words]),
    ),
    (r"Remove the &", _edited(lambda words, _: [*words[:-1], words[-1].rstrip("& ")])),
    (r"(?:Use|Write)(?: --hostfile)? (/etc/mpi/hostfile)(?: instead)?\.$", _hostfile),
    (r"Replace (-\w+) by (-\w+)\.$", _replaced),
    (r"Join it to the text by &&\.$", _edited(lambda words, _: [*words[:-2], " && ".join(words[-2:])])),
    (r"Start sshd with .*: (\[.*\])\.$", _write),
    (r"Write (?!a |text |true or )(.+?)\.$", _write),
    (r"Use one of ([^,]+)", _write),
    (r"Use ([\w/.-]+), or", _write),
    (r"(?:Add it, such as|Add|Write) \w+: (.*)\.$", _write),
    (r"Set -np to (\d+)", _ranks),
    (r"Request (\d+) CPUs\.$", _cores),
    (r"Set (it|[\w.]+)(?: to|:) (.+?)\.(?: |$)", _set),
    (r"Remove (?:it|fsGroup|one of the two)", _remove),
)
