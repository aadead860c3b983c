import copy

import jsonpatch
import pytest

from webhook.kit.patch import PatchBuilder, PatchConflict, pointer, template_path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ((), ""),
        (("~1", "/~"), "/~01/~1~0"),
        (("", 0, "-"), "//0/-"),
        (template_path("A"), "/spec/mpiReplicaSpecs/A/template"),
    ],
)
def test_pointer_escapes_slashes_and_tildes(path, expected):
    assert pointer(path) == expected


STEPS = {
    "add": lambda builder, path, value, over=None: builder.add(path, value, over=over),
    "append": lambda builder, path, item, key="name": builder.append(path, item, key=key),
    "add_entries": PatchBuilder.add_entries,
}


def build(document, *steps):
    builder = PatchBuilder(copy.deepcopy(document))
    results = [STEPS[method](builder, *arguments) for method, *arguments in steps]
    assert jsonpatch.JsonPatch(builder.operations).apply(document) == builder.document
    return builder, results


@pytest.mark.parametrize(
    ("document", "path", "operations"),
    [
        ({}, ("a",), [("/a", 1)]),
        ({}, ("a", "b", "c"), [("/a", {"b": {"c": 1}})]),
        ({"a": {}}, ("a", "b", "c"), [("/a/b", {"c": 1})]),
        ({"a": [{}]}, ("a", 0, "b/c"), [("/a/0/b~1c", 1)]),
        ({"a": 0}, ("a",), []),
        ({"a": {"b": {}}}, ("a", "b"), []),
    ],
)
def test_add_sets_a_missing_field_and_keeps_an_existing_value(document, path, operations):
    builder, (added,) = build(document, ("add", path, 1))
    assert [(o["path"], o["value"]) for o in builder.operations] == operations
    assert all(o["op"] == "add" for o in builder.operations)
    assert added == bool(operations)


@pytest.mark.parametrize(
    ("document", "value", "over", "added"),
    [
        ({"a": {"b": False}}, True, False, [("/a/b", True)]),
        ({"a": {"b": None}}, True, False, [("/a/b", True)]),
        ({"a": {"b": 0}}, True, False, []),
        ({}, True, False, [("/a", {"b": True})]),
        ({"a": {"b": "default"}}, "new", "".join(("de", "fault")), [("/a/b", "new")]),
        *(({"a": {"b": own}}, "new", "default", []) for own in ("own", "new", 0, {})),
    ],
)
def test_add_replaces_only_null_and_the_default(document, value, over, added):
    builder, (was_added,) = build(document, ("add", ("a", "b"), value, over))
    assert was_added == bool(added)
    assert [(o["path"], o["value"]) for o in builder.operations] == added


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"a": 1}, ("a", "b")),
        ({"a": "text"}, ("a", 0)),
        ({"a": []}, ("a", 0, "b")),
        ({"a": []}, ("a", "b")),
        ({"a": {}}, ("a", 0)),
        ({}, ("a", 0, "b")),
    ],
)
def test_add_to_an_object_with_a_different_structure_is_a_conflict(document, path):
    builder = PatchBuilder(copy.deepcopy(document))
    with pytest.raises(PatchConflict, match=f"^{pointer(path[:1])}"):
        builder.add(path, 1)
    assert (builder.operations, builder.document) == ([], document)


def test_add_entries_returns_the_missing_entries():
    builder, (added,) = build({"m": {"a": "1", "b": None}}, ("add_entries", ("m",), {"a": "x", "b": "y", "c/d": "z"}))
    assert added == {"b": "y", "c/d": "z"}
    assert builder.document == {"m": {"a": "1", "b": "y", "c/d": "z"}}


@pytest.mark.parametrize(
    ("document", "added"),
    [
        ({}, True),
        ({"l": None}, True),
        ({"l": []}, True),
        ({"l": [{"name": "other"}, None, "text", {}]}, True),
        ({"l": [{"name": "x", "value": "mine"}]}, False),
    ],
)
def test_item_is_appended_once(document, added):
    item = {"name": "x", "value": "ours"}
    builder, results = build(document, ("append", ("l",), item), ("append", ("l",), item))
    assert results == [added, False]
    assert len(builder.operations) == added


def test_append_compares_items_by_the_given_key():
    mount = {"name": "shm", "mountPath": "/dev/shm"}
    builder = PatchBuilder({"l": [{"name": "shm", "mountPath": "/other"}]})
    assert builder.append(("l",), mount, key="mountPath")
    assert not builder.append(("l",), {"name": "mine", "mountPath": "/dev/shm"}, key="mountPath")


GPU = {"key": "gpu", "operator": "Exists"}


@pytest.mark.parametrize(
    ("document", "item", "added"),
    [
        ({"l": [{"key": "gpu", "value": "a100"}]}, GPU, True),
        ({"l": [dict(reversed(GPU.items()))]}, GPU, False),
        ({}, "y", True),
        ({"l": ["y"]}, "y", False),
    ],
)
def test_append_without_a_key_compares_whole_items(document, item, added):
    builder, (was_added,) = build(document, ("append", ("l",), item, None))
    assert was_added == added
    assert builder.document["l"][-1] == item


def test_append_to_an_object_is_a_conflict():
    with pytest.raises(PatchConflict, match="/a: is not a list"):
        PatchBuilder({"a": {}}).append(("a",), {"name": "x"})


@pytest.mark.parametrize(
    ("path", "value"),
    [(("a", 0, "b"), 1), (("a", 1), None), (("a", "b"), None), ((), {"a": [{"b": 1}]})],
)
def test_get_returns_the_value_or_none(path, value):
    assert PatchBuilder({"a": [{"b": 1}]}).get(path) == value


def test_later_steps_change_neither_earlier_operations_nor_the_callers_value():
    policy, item = {"list": [{"name": "x", "nested": {"a": "1"}}]}, {"name": "y"}
    before = copy.deepcopy(policy)
    builder, _ = build(
        {},
        ("add", ("l",), policy),
        ("append", ("l", "list"), item),
        ("add", ("l", "list", 0, "nested", "b"), "2"),
        ("add", ("l", "list", 1, "value"), "3"),
    )
    assert (policy, item) == (before, {"name": "y"})
    assert [operation["value"] for operation in builder.operations] == [before, {"name": "y"}, "2", "3"]


def test_every_operation_has_its_author():
    builder = PatchBuilder({})
    for author in ("one", "two"):
        builder.author = author
        builder.add((author,), 1)
        builder.add((author,), 1)
    assert builder.authors == ["one", "two"]
    assert len(builder.operations) == 2
