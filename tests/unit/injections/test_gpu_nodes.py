import pytest

from tests.support.injecting import Example, hold, mpijob, mutate, only, policy_of
from tests.support.nodes import node
from webhook.admission import pipelines
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown

ID = "gpu-nodes"
GPU, PRESENT, PRODUCT = "nvidia.com/gpu", "nvidia.com/gpu.present", "nvidia.com/gpu.product"
PRODUCT_ANNOTATION = "training.openshift.io/gpu-product"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

H100 = {PRESENT: "true", PRODUCT: "H100"}
TAINTED = node("g", H100, ("nvidia.com/gpu:NoSchedule", "team:NoSchedule"), **{GPU: "8"})
NODES = Snapshot([TAINTED, node("c", {}, ("amd.com/gpu:NoSchedule",))])
EXAMPLE = Example(job=mpijob(worker={"spec": {"containers": [{"name": "a", "resources": {"limits": {GPU: 1}}}]}}))


def gpu_job(*, own=None, requests=None, product=None, **fields):
    """A job whose workers request GPUs, or the given `requests`. `own` has more fields of the workers' pod spec."""
    container = {"name": "mpi", "image": "x:1", "resources": {"limits": {GPU: 2} if requests is None else requests}}
    metadata = {} if product is None else {"annotations": {PRODUCT_ANNOTATION: product}}
    return mpijob(worker={"spec": {"containers": [container], **(own or {})}}, metadata=metadata, **fields)


def inject(job, view=NODES, **settings):
    """Return the placement fields of each role that has such fields, and the notes."""
    decision = hold(job, only(ID, **settings), view=view)
    assert not decision.skipped
    by_role = {}
    for role, replica in decision.document["spec"]["mpiReplicaSpecs"].items():
        spec = replica["template"].get("spec") or {}
        if placement := {key: spec[key] for key in ("affinity", "tolerations", "nodeSelector") if key in spec}:
            by_role[role] = placement
    return by_role, [note.removeprefix(f"{ID}: ") for note in decision.notes]


def node_label(key, *values):
    return {"key": key, "operator": "In", "values": list(values or ("true",))}


def prefer(key=PRESENT, *others):
    return {
        "nodeAffinity": {PREFERRED: [*others, {"weight": 50, "preference": {"matchExpressions": [node_label(key)]}}]}
    }


def require(*terms):
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": list(term)} for term in terms]}}}


TOLERATION = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
TOLERATED = f"a toleration of {GPU}"


@pytest.mark.parametrize(
    ("settings", "expected", "note"),
    [
        (
            {},
            {"affinity": prefer(), "tolerations": [TOLERATION]},
            f"a preference for nodes with {PRESENT}, {TOLERATED}",
        ),
        (
            {"nodeAffinity": "required"},
            {"affinity": require([node_label(PRESENT)]), "tolerations": [TOLERATION]},
            f"nodes with {PRESENT}, {TOLERATED}",
        ),
    ],
)
def test_gpu_pods_get_an_affinity_and_a_toleration(settings, expected, note):
    assert inject(gpu_job(), **settings) == ({"Worker": expected}, [f"added {note}"])


def test_pods_without_gpus_stay_unchanged():
    assert inject(mpijob()) == ({}, [])
    assert inject(gpu_job(requests={GPU: 0}), nodeAffinity="required") == ({}, [])


def test_nothing_is_injected_with_both_settings_off():
    assert inject(gpu_job(), nodeAffinity="off", tolerations=False) == ({}, [])


def test_unquoted_off_in_a_policy_is_read_as_off():
    document = (
        "apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\ninjections: {gpu-nodes: {nodeAffinity: off}}"
    )
    (settings,) = (settings for entry, settings in pipelines.load_policy(document).injections if entry.id == ID)
    assert settings.node_affinity == "off"


class TestTerms:
    """One matching node selector term is enough for the scheduler, so each term must have the requirement."""

    POOL = node_label("pool", "a")

    def required(self, *terms, **own):
        affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}
        placed, _ = inject(gpu_job(own={"affinity": affinity, **own}), nodeAffinity="required", tolerations=False)
        return placed["Worker"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]

    @pytest.mark.parametrize(
        ("own", "added"),
        [
            ([[POOL], [node_label("zone", "b")]], [True, True]),
            # If one term already has the key, no term gets the requirement.
            ([[{"key": PRESENT, "operator": "DoesNotExist"}], [POOL]], [False, False]),
            ([{}, [POOL]], [False, True]),
            ([[], [POOL]], [False, True]),
            ([{"matchExpressions": None, "matchFields": []}, [POOL]], [False, True]),
            ([], []),
        ],
    )
    def test_requirement_is_added_to_every_term_that_selects_nodes(self, own, added):
        terms = [term if isinstance(term, dict) else {"matchExpressions": term} for term in own]
        after = [
            {"matchExpressions": [*term["matchExpressions"], node_label(PRESENT)]} if more else term
            for term, more in zip(terms, added, strict=True)
        ]
        assert self.required(*terms) == after

    def test_requirement_is_added_to_a_term_with_only_fields(self):
        fields = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
        assert self.required(fields) == [{**fields, "matchExpressions": [node_label(PRESENT)]}]

    def test_node_selector_with_the_same_label_stays_unchanged(self):
        own = {"nodeSelector": {PRESENT: "false"}}
        for strength in ("required", "preferred"):
            placed, _ = inject(gpu_job(own=own), nodeAffinity=strength, tolerations=False)
            assert placed == {"Worker": own}

    def test_preference_does_not_change_the_required_terms(self):
        affinity = require([self.POOL])
        placed, _ = inject(gpu_job(own={"affinity": affinity}), tolerations=False)
        nodes = {"nodeAffinity": affinity["nodeAffinity"] | prefer()["nodeAffinity"]}
        assert placed["Worker"]["affinity"] == nodes

    @pytest.mark.parametrize(
        ("own", "added"),
        [
            ({"weight": 1, "preference": {"matchExpressions": [node_label(PRESENT, "false")]}}, False),
            ({"weight": 1, "preference": {"matchExpressions": [node_label("pool")]}}, True),
            ({"weight": 1, "preference": {"matchExpressions": [7]}}, True),
            ({"weight": 1, "preference": {}}, True),
            ({"preference": 3}, True),
        ],
    )
    def test_preference_is_added_unless_the_user_has_one_for_the_label(self, own, added):
        affinity = {"nodeAffinity": {PREFERRED: [own]}}
        placed, _ = inject(gpu_job(own={"affinity": affinity}), tolerations=False)
        assert placed["Worker"]["affinity"] == (prefer(PRESENT, own) if added else affinity)


class TestNodes:
    """The labels and taints of the cluster's nodes decide what is injected."""

    def test_affinity_is_a_preference_if_nodes_are_unknown(self):
        for view in (NothingKnown(), Snapshot([])):
            for strength in ("preferred", "required"):
                assert inject(gpu_job(), view, nodeAffinity=strength) == (
                    {"Worker": {"affinity": prefer()}},
                    [f"added a preference for nodes with {PRESENT}"],
                )

    def test_label_that_no_node_has_is_not_injected(self):
        view = Snapshot([node("n", **{GPU: "8"})])
        assert inject(gpu_job(), view) == ({}, [])
        note = f"no node has the label {PRESENT}, so it is not required"
        assert inject(gpu_job(), view, nodeAffinity="required") == ({}, [note])

    @pytest.mark.parametrize(
        ("taints", "resource", "tolerated"),
        [
            (["nvidia.com/gpu:NoSchedule"], GPU, True),
            (["nvidia.com/gpu:NoExecute"], GPU, False),
            (["nvidia.com/gpu:PreferNoSchedule"], GPU, False),
            (["team:NoSchedule", "dedicated:NoSchedule"], GPU, False),
            (["amd.com/gpu:NoSchedule"], GPU, False),
            (["nvidia.com/gpu:NoSchedule"], "amd.com/gpu", False),  # the nodes have another accelerator
        ],
    )
    def test_no_schedule_taint_for_the_accelerator_of_the_node_is_tolerated(self, taints, resource, tolerated):
        placed, _ = inject(gpu_job(), Snapshot([node("n", {}, taints, **{resource: "8"})]))
        assert placed == ({"Worker": {"tolerations": [TOLERATION]}} if tolerated else {})

    def test_taint_of_nodes_without_the_device_is_not_tolerated(self):
        assert inject(gpu_job(), Snapshot([node("n", {}, ["nvidia.com/gpu:NoSchedule"], **{GPU: "0"})])) == ({}, [])

    def test_taint_that_the_policy_names_is_tolerated(self):
        vendors = [{"resources": ["nvidia.com/*"], "taints": ["sku", "pool"]}]
        view = Snapshot([node("n", {}, ["sku:NoSchedule", "team:NoSchedule"], **{GPU: "8"})])
        placed, _ = inject(gpu_job(), view, vendors=vendors)
        assert placed == {"Worker": {"tolerations": [{**TOLERATION, "key": "sku"}]}}

    @pytest.mark.parametrize("own", [{"operator": "Exists"}, {"key": GPU, "operator": "Exists"}, TOLERATION])
    def test_toleration_of_the_user_is_enough(self, own):
        placed, _ = inject(gpu_job(own={"tolerations": [own]}), nodeAffinity="off")
        assert placed == {"Worker": {"tolerations": [own]}}

    @pytest.mark.parametrize(
        ("label", "resource", "vendor"),
        [
            (PRESENT, "nvidia.com/mig-1g.5gb", GPU),
            ("feature.node.kubernetes.io/amd-gpu", "amd.com/gpu", "amd.com/gpu"),
            ("", "habana.ai/gaudi", "habana.ai/gaudi"),
        ],
    )
    def test_gpu_slices_and_other_vendors_get_their_label_and_toleration(self, label, resource, vendor):
        labels = {label: "true"} if label else {}
        view = Snapshot([node("n", labels, [f"{vendor}:NoSchedule"], **{resource: "8"}), TAINTED])
        placed, _ = inject(gpu_job(requests={resource: 1}), view)
        affinity = {"affinity": prefer(label)} if label else {}
        assert placed == {"Worker": {**affinity, "tolerations": [{**TOLERATION, "key": vendor}]}}

    def test_product_is_ignored_for_a_vendor_without_labels(self):
        view = Snapshot([node("n", {}, ["habana.ai/gaudi:NoSchedule"], **{"habana.ai/gaudi": "8"})])
        placed, _ = inject(gpu_job(requests={"habana.ai/gaudi": 1}, product="HL-225"), view, nodeAffinity="required")
        assert placed == {"Worker": {"tolerations": [{**TOLERATION, "key": "habana.ai/gaudi"}]}}


class TestClaims:
    """A resource claim does not name the vendor of its devices."""

    JOB = gpu_job(requests={}, own={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]})

    def test_affinity_is_at_most_a_preference(self):
        for strength in ("preferred", "required"):
            assert inject(self.JOB, nodeAffinity=strength)[0] == {"Worker": {"affinity": prefer()}}

    def test_nothing_is_injected_for_an_unknown_vendor(self):
        both = Snapshot([TAINTED, node("a", {"feature.node.kubernetes.io/amd-gpu": "true"})])
        for view in (both, Snapshot([node("n")]), NothingKnown()):
            assert inject(self.JOB, view) == ({}, [])


class TestProduct:
    """A product in the job's annotation becomes a requirement, because the user chose it."""

    @pytest.mark.parametrize(
        ("annotation", "values"),
        [("H100", ["H100"]), (" H100 , A100,H100,", ["H100", "A100"])],
    )
    @pytest.mark.parametrize("strength", ["preferred", "off"])
    def test_named_products_are_required(self, annotation, values, strength):
        placed, notes = inject(gpu_job(product=annotation), nodeAffinity=strength, tolerations=False)
        required = {REQUIRED: placed["Worker"]["affinity"]["nodeAffinity"][REQUIRED]}
        assert {"nodeAffinity": required} == require([node_label(PRODUCT, *values)])
        assert f"nodes with {PRODUCT} {' or '.join(values)}" in notes[0]

    @pytest.mark.parametrize("terms", [[[]], [[node_label("pool", "a")], [node_label("pool", "b")]]])
    def test_product_and_label_are_added_to_every_term(self, terms):
        own = {"affinity": require(*terms)} if terms != [[]] else {}
        placed, _ = inject(gpu_job(product="H100", own=own), nodeAffinity="required", tolerations=False)
        added = node_label(PRODUCT, "H100"), node_label(PRESENT)
        assert placed["Worker"]["affinity"] == require(*([*term, *added] for term in terms))

    @pytest.mark.parametrize(
        "own", [{"nodeSelector": {PRODUCT: "A100"}}, {"affinity": require([node_label(PRODUCT, "A100")])}]
    )
    def test_product_in_the_users_placement_stays(self, own):
        placed, notes = inject(gpu_job(product="H100", own=own), nodeAffinity="off", tolerations=False)
        assert placed == {"Worker": own}
        assert notes == [f'{PRODUCT_ANNOTATION} "H100" has no effect: the job\'s own choice of nodes stays']

    @pytest.mark.parametrize("strength", ["required", "off"])
    def test_product_is_added_to_no_term_if_one_term_names_a_product(self, strength):
        """The second term allows any product, and must not be narrowed."""
        own = {"affinity": require([node_label(PRODUCT, "A100")], [node_label("pool", "a")])}
        placed, notes = inject(gpu_job(product="H100", own=own), nodeAffinity=strength, tolerations=False)
        present = [node_label(PRESENT)] if strength == "required" else []
        expected = require([node_label(PRODUCT, "A100"), *present], [node_label("pool", "a"), *present])
        assert placed["Worker"]["affinity"] == expected
        assert [note for note in notes if PRODUCT in note] == []
        assert notes.count(f'{PRODUCT_ANNOTATION} "H100" has no effect: the job\'s own choice of nodes stays') == 1

    @pytest.mark.parametrize("strength", ["required", "off"])
    def test_injected_product_is_not_a_user_choice(self, strength):
        policy = only(ID, nodeAffinity=strength)
        first = hold(gpu_job(product="H100"), policy, view=NODES)
        assert mutate(first.document, policy, view=NODES).notes == []

    @pytest.mark.parametrize(
        "product", ["", " , ", "a b", "x" * 64, ",".join(f"p{index}" for index in range(17)), "-", "é"]
    )
    def test_invalid_product_is_reported(self, product):
        placed, (note,) = inject(gpu_job(product=product), nodeAffinity="off", tolerations=False)
        assert placed == {}
        assert note.endswith("has no effect: it must be the name of a product, or several names with commas")

    def test_product_without_a_gpu_request_is_reported(self):
        job = mpijob(metadata={"annotations": {PRODUCT_ANNOTATION: "H100"}})
        assert inject(job) == ({}, [f'{PRODUCT_ANNOTATION} "H100" has no effect: no pod requests a GPU'])

    def test_product_for_a_vendor_without_product_label_is_reported(self):
        _, (note,) = inject(gpu_job(product="H100", requests={"habana.ai/gaudi": 1}), tolerations=False)
        assert note == f'{PRODUCT_ANNOTATION} "H100" has no effect: no known node label has the product'

    def test_product_has_its_own_warning(self):
        decision = hold(gpu_job(product="a b"), policy_of({ID: {}}), view=NODES)
        assert any(PRODUCT_ANNOTATION in warning for warning in decision.warnings)
