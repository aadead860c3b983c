import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.api import images
from webhook.api.images import ImageError, ImageReference, in_registry, parse, registry_problem

SHA = "sha256:" + "0a" * 32


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ubuntu", ("docker.io", "library/ubuntu", None, None)),
        ("org/app", ("docker.io", "org/app", None, None)),
        ("docker.io/ubuntu", ("docker.io", "library/ubuntu", None, None)),
        ("index.docker.io/ubuntu", ("docker.io", "library/ubuntu", None, None)),
        ("library/ubuntu", ("docker.io", "library/ubuntu", None, None)),
        ("localhost", ("docker.io", "library/localhost", None, None)),
        ("localhost/app", ("localhost", "app", None, None)),
        ("host:5000", ("docker.io", "library/host", "5000", None)),
        ("host:5000/app", ("host:5000", "app", None, None)),
        ("[::1]:5000/app", ("[::1]:5000", "app", None, None)),
        ("Registry/app", ("Registry", "app", None, None)),
        ("my_hub.example/app", ("my_hub.example", "app", None, None)),
        (f"quay.io/app:1.0@{SHA}", ("quay.io", "app", "1.0", SHA)),
        ("quay.io/app@sha384:" + "0" * 96, ("quay.io", "app", None, "sha384:" + "0" * 96)),
        ("quay.io/a_b/a__b/a---b/a.b:_A.-1", ("quay.io", "a_b/a__b/a---b/a.b", "_A.-1", None)),
        ("quay.io/" + "a" * 255, ("quay.io", "a" * 255, None, None)),
        ("quay.io/a:" + "t" * 128, ("quay.io", "a", "t" * 128, None)),
        *[("f" * n, ("docker.io", "library/" + "f" * n, None, None)) for n in (63, 65)],
        ("sha256:v1", ("docker.io", "library/sha256", "v1", None)),
        ("registry.example.com/sha256:0a", ("registry.example.com", "sha256", "0a", None)),
    ],
)
def test_valid_reference_is_parsed(text: str, expected: tuple[str, str, str | None, str | None]) -> None:
    assert msgspec.structs.astuple(parse(text)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the image reference is empty"),
        ("https://quay.io/app", "starts with a scheme: remove everything up to and including ://"),
        ("docker://app", "starts with a scheme"),
        ("ubuntu\n", r'"ubuntu\n" contains a blank'),
        ("a b", "contains a blank"),
        ("ubunt\u00fc", r'"ubunt\u00fc" contains a blank or a character outside ASCII'),
        ("f" * 64, "is an image id, not a name"),
        ("sha256:0a", "is an image id, not a name"),
        ("sha256:1", "is an image id, not a name"),
        ("Ubuntu", '"Ubuntu" has upper case letters, an image name is lower case'),
        ("quay.io/Team/app", '"Team/app" has upper case letters'),
        ("quay.io/", '"" is not an image name'),
        ("/app", '"/app" is not an image name'),
        (
            "quay.io/a..b",
            '"a..b" is not an image name: between slashes use lower case letters and digits, with single',
        ),
        ("quay.io/a___b", '"a___b" is not an image name'),
        ("quay.io/-a", '"-a" is not an image name'),
        (":1.0", '"" is not an image name'),
        ("-quay.io/app", '"-quay.io" is not the host name of a registry'),
        ("host:port/app", '"host:port" is not the host name of a registry'),
        ("my_hub:5000/app", '"my_hub:5000" is not the host name of a registry'),
        ("[::1/app", '"[::1" is not the host name of a registry'),
        ("user@host:1/app", '"user@host:1" is not the host name of a registry'),
        ("app:", '"" is not a tag'),
        ("app:-a", '"-a" is not a tag: allowed are letters, digits, "_", "." and "-", the last two not at the start'),
        ("app:a:b", '"a:b" is not a tag'),
        ("app:x/b:2", '"app:x" is not the host name of a registry'),
        ("quay.io/app:1/b", '"1/b" is not a tag'),
        ("app:" + "t" * 129, "a tag has at most 128 characters, this one has 129"),
        ("app@", '"" is not a digest: start it with one of sha256:, sha384:, sha512:'),
        ("app@latest", '"latest" is not a digest'),
        ("app@SHA256:" + "0" * 64, "is not a digest: start it with one of"),
        ("app@sha256:" + "0" * 63, "a sha256 digest has 64 characters out of 0-9 and a-f, not"),
        ("app@sha256:" + "A" * 64, "a sha256 digest has 64 characters out of 0-9 and a-f, not"),
        ("app@sha512:" + "0" * 64, "a sha512 digest has 128 characters"),
        (f"app@{SHA}:1.0", "a sha256 digest has 64 characters"),
        ("quay.io/" + "a" * 256, "an image name has at most 255 characters, not 256"),
        ("a" * 1025, "an image reference has at most 1024 characters, this one has 1025"),
        *[(char * 2**20, "at most 1024 characters") for char in "a-./:@_"],
    ],
)
def test_message_names_the_fault_of_an_invalid_reference(text: str, message: str) -> None:
    with pytest.raises(ImageError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert str(caught.value).isascii()
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "text", ["a." * 500 + "/", "a-" * 500, "-" * 1024, "_" * 1024, "a" + "-" * 1023, "a/" * 500, "a__" * 340]
)
def test_text_of_nearly_the_maximum_length_is_rejected_quickly(text: str) -> None:
    with pytest.raises(ImageError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "tag"), [("app", "latest"), ("app:1", "1"), (f"app@{SHA}", None), (f"app:1@{SHA}", None)]
)
def test_effective_tag(text: str, tag: str | None) -> None:
    assert parse(text).effective_tag == tag


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("ubuntu", "docker.io/library/ubuntu"),
        ("org/app:1", "docker.io/org/app:1"),
        (f"quay.io/app:1@{SHA}", f"quay.io/app:1@{SHA}"),
    ],
)
def test_text_of_a_reference_is_the_full_name(text: str, full: str) -> None:
    assert str(parse(text)) == full
    assert parse(full) == parse(text)


@pytest.mark.parametrize(
    ("image", "entry", "expected"),
    [
        ("registry.example.com/ml/app", "registry.example.com/ml", True),
        ("registry.example.com/ml/sub/app:1", "registry.example.com/ml", True),
        ("registry.example.com/ml", "registry.example.com/ml", True),
        ("registry.example.com/ml/app", "registry.example.com", True),
        ("registry.example.com/mlops/app", "registry.example.com/ml", False),
        ("registry.example.com.evil.org/ml/app", "registry.example.com/ml", False),
        ("evil.org/registry.example.com/ml/app", "registry.example.com/ml", False),
        ("evil.registry.example.com/ml/app", "registry.example.com", False),
        ("REGISTRY.example.com/ml/app", "registry.Example.com/ml", True),
        ("registry.example.com:5000/ml/app", "registry.example.com:5000/ml", True),
        ("registry.example.com:5000/ml/app", "registry.example.com/ml", False),
        ("registry.example.com:50001/app", "registry.example.com:5000", False),
        ("ubuntu", "docker.io", True),
        ("ubuntu", "docker.io/library", True),
        ("ubuntu", "index.docker.io/library", True),
        ("ubuntu", "docker.io/ubuntu", False),
        ("localhost/app", "localhost", True),
        # invalid entries match nothing
        ("quay.io/app", "", False),
        ("quay.io/app", "quay.io/", False),
        ("quay.io/team/app", "quay.io/Team", False),
        ("quay.io/app", "*.io", False),
        ("org/app", "org", False),
    ],
)
def test_image_matches_a_registry_with_a_path(image: str, entry: str, expected: bool) -> None:
    assert in_registry(parse(image), entry) is expected
    if expected:
        assert registry_problem(entry) is None


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("quay.io", None),
        ("localhost:5000", None),
        ("docker.io/library", None),
        ("registry.example.com:5000/a/b_c", None),
        ("[::1]:5000/a", None),
        ("http://quay.io", "starts with a scheme: remove everything up to and including ://"),
        ("org", 'does not start with a registry: for an organisation on Docker Hub write "docker.io/org"'),
        ("org/app", 'does not start with a registry: for an organisation on Docker Hub write "docker.io/org/app"'),
    ],
)
def test_registry_entry_is_valid_or_has_a_problem(entry: str, problem: str | None) -> None:
    assert registry_problem(entry) == problem


@pytest.mark.parametrize(
    "entry",
    [
        *["", "/", "quay.io/", "*.example.com", "quay.io/Team", "quay.io/a:1", "quay.io\n"],
        *["quay.io/" + "a/" * 600 + "a", "a." * 2**19, "a/" * 2**19, "__" * 2**19],
    ],
    ids=lambda entry: repr(entry[:20]),
)
def test_text_that_is_not_a_registry_is_a_problem(entry: str) -> None:
    problem = 'is not a registry with an optional path, such as "quay.io" or "registry.example.com:5000/team"'
    assert registry_problem(entry) == problem


hosts = st.sampled_from(["quay.io", "docker.io", "localhost:5000", "Quay.IO", "my_hub.example"])
paths = st.lists(st.sampled_from(["a", "ab", "library", "a_b"]), min_size=1, max_size=3).map("/".join)


@given(hosts, paths, st.none() | st.sampled_from(["1", "latest"]), st.none() | st.just(SHA))
def test_parse_reads_the_text_of_a_reference(host: str, path: str, tag: str | None, digest: str | None) -> None:
    repository = f"library/{path}" if host == "docker.io" and "/" not in path else path
    reference = ImageReference(host, repository, tag, digest)
    assert parse(str(reference)) == reference


@given(hosts, paths, hosts, st.just("") | paths)
def test_in_registry_compares_whole_segments_of_the_path(host: str, path: str, allowed: str, under: str) -> None:
    entry = f"{allowed}/{under}" if under else allowed
    segments, wanted = path.split("/"), [part for part in under.split("/") if part]
    expected = host.lower() == allowed.lower() and segments[: len(wanted)] == wanted
    assert in_registry(ImageReference(host, path), entry) is expected


@given(
    st.text("aA0._-/:@ ", max_size=20) | st.text(max_size=20), st.text("aA0._-/:", max_size=10) | st.text(max_size=10)
)
def test_any_text_is_parsed_or_raises_an_image_error(text: str, entry: str) -> None:
    problem = registry_problem(entry)
    try:
        reference = parse(text)
    except ImageError:
        return
    assert images.parse(str(reference)) == reference
    if problem:
        assert not in_registry(reference, entry)
