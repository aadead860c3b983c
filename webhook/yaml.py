"""YAML as Kubernetes users write it: safe, and a key written twice is an error instead of a silent loss."""

from typing import Any

import yaml

# libyaml's parser, in C: https://pyyaml.org/wiki/PyYAMLDocumentation
_Base = yaml.CSafeLoader


class YamlError(ValueError):
    """The text is not YAML, or not YAML that can be used; the message has line and column."""


class _Loader(_Base):
    """Refuses duplicate keys and keys that JSON cannot have; timestamps stay text, as in Kubernetes."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        self.flatten_mapping(node)
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str | int | float | bool):
                raise yaml.constructor.ConstructorError(None, None, "a key must be plain text", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is there twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def _text(loader: _Loader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _text)


def load_all(text: str | bytes) -> list[Any]:
    """Every document in `text`, empty ones left out; YamlError with line and column for what cannot be read."""
    try:
        return [document for document in yaml.load_all(text, Loader=_Loader) if document is not None]
    except yaml.YAMLError as error:
        raise YamlError(_words(error)) from None
    except (RecursionError, UnicodeDecodeError, ValueError) as error:
        raise YamlError(f"cannot be read: {error}") from None


def _words(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem or error.context}"
    return " ".join(str(error).split())
