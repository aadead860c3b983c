import pytest

from tests.support.injecting import PATHS, Example, hold, mpijob, mutate, only, policy_of
from tests.support.nodes import node
from webhook.admission import pipelines
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown

ID = "gpu-nodes"
WORKER = PATHS["Worker"]
GPU, PRESENT, PRODUCT = "nvidia.com/gpu", "nvidia.com/gpu.present", "nvidia.com/gpu.product"
ASKED = "training.openshift.io/gpu-product"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


H100 = {PRESENT: "true", PRODUCT: "H100"}
GUARDED = node("g", H100, ("nvidia.com/gpu:NoSchedule", "team:NoSchedule"), **{GPU: "8"})
NODES = Snapshot([GUARDED, node("c", {}, ("amd.com/gpu:NoSchedule",))])
EXAMPLE = Example(job=mpijob(worker={"spec": {"containers": [{"name": "a", "resources": {"limits": {GPU: 1}}}]}}))


def gpu_job(*, own=None, asks=None, product=None, **fields):
    """Workers with GPUs; `own` are other fields of their pod spec."""
    container = {"name": "mpi", "image": "x:1", "resources": {"limits": {GPU: 2} if asks is None else asks}}
    metadata = {} if product is None else {"annotations": {ASKED: product}}
    return mpijob(worker={"spec": {"containers": [container], **(own or {})}}, metadata=metadata, **fields)


def inject(job, view=NODES, **settings):
    """The pod specs by role as far as placement goes, where there is any, and the notes."""
    decision = hold(job, only(ID, **settings), view=view)
    assert not decision.skipped
    found = {}
    for role, replica in decision.document["spec"]["mpiReplicaSpecs"].items():
        spec = replica["template"].get("spec") or {}
        if placed := {key: spec[key] for key in ("affinity", "tolerations", "nodeSelector") if key in spec}:
            found[role] = placed
    return found, [note.removeprefix(f"{ID}: ") for note in decision.notes]


def one(key, *values):
    return {"key": key, "operator": "In", "values": list(values or ("true",))}


def prefer(key=PRESENT, *others):
    return {"nodeAffinity": {PREFERRED: [*others, {"weight": 50, "preference": {"matchExpressions": [one(key)]}}]}}


def require(*terms):
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": list(term)} for term in terms]}}}


TOLERATION = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
TOLERATED = f"a toleration of {GPU}"


@pytest.mark.parametrize(
    ("settings", "placed", "note"),
    [
        (
            {},
            {"affinity": prefer(), "tolerations": [TOLERATION]},
            f"a preference for nodes with {PRESENT}, {TOLERATED}",
        ),
        (
            {"nodeAffinity": "required"},
            {"affinity": require([one(PRESENT)]), "tolerations": [TOLERATION]},
            f"nodes with {PRESENT}, {TOLERATED}",
        ),
        ({"nodeAffinity": "off", "tolerations": False}, {}, ""),
    ],
)
def test_gpu_pods_are_drawn_to_gpu_nodes_and_past_their_taint(settings, placed, note):
    found = inject(gpu_job(), **settings)
    assert found == (({"Worker": placed}, [f"added {note}"]) if placed else ({}, []))


def test_pods_without_gpus_get_nothing():
    assert inject(mpijob()) == ({}, [])
    assert inject(gpu_job(asks={GPU: 0}), nodeAffinity="required") == ({}, [])


def test_off_as_yaml_reads_it():
    document = (
        "apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\ninjections: {gpu-nodes: {nodeAffinity: off}}"
    )
    (settings,) = (settings for entry, settings in pipelines.load_policy(document).injections if entry.id == ID)
    assert settings.node_affinity == "off"


class TestTerms:
    """Terms are alternatives: a requirement must be in each of them."""

    MINE = one("pool", "a")

    def required(self, *terms, **own):
        affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}
        found, _ = inject(gpu_job(own={"affinity": affinity, **own}), nodeAffinity="required", tolerations=False)
        return found["Worker"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]

    @pytest.mark.parametrize(
        ("own", "added"),
        [
            ([[MINE], [one("zone", "b")]], [True, True]),
            # Added to the others alone it would narrow what the user left open there.
            ([[{"key": PRESENT, "operator": "DoesNotExist"}], [MINE]], [False, False]),
            ([{}, [MINE]], [False, True]),
            ([[], [MINE]], [False, True]),
            ([{"matchExpressions": None, "matchFields": []}, [MINE]], [False, True]),
            ([], []),
        ],
    )
    def test_requirement_is_added_to_every_term_that_selects_nodes(self, own, added):
        terms = [each if isinstance(each, dict) else {"matchExpressions": each} for each in own]
        after = [
            {"matchExpressions": [*term["matchExpressions"], one(PRESENT)]} if more else term
            for term, more in zip(terms, added, strict=True)
        ]
        assert self.required(*terms) == after

    def test_a_term_on_fields_only(self):
        fields = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
        assert self.required(fields) == [{**fields, "matchExpressions": [one(PRESENT)]}]

    def test_a_node_selector_of_the_same_label_stays_alone(self):
        own = {"nodeSelector": {PRESENT: "false"}}
        for strength in ("required", "preferred"):
            found, _ = inject(gpu_job(own=own), nodeAffinity=strength, tolerations=False)
            assert found == {"Worker": own}

    def test_a_preference_leaves_the_terms_alone(self):
        affinity = require([self.MINE])
        found, _ = inject(gpu_job(own={"affinity": affinity}), tolerations=False)
        nodes = {"nodeAffinity": affinity["nodeAffinity"] | prefer()["nodeAffinity"]}
        assert found["Worker"]["affinity"] == nodes

    @pytest.mark.parametrize(
        ("own", "added"),
        [
            ({"weight": 1, "preference": {"matchExpressions": [one(PRESENT, "false")]}}, False),
            ({"weight": 1, "preference": {"matchExpressions": [one("pool")]}}, True),
            ({"weight": 1, "preference": {"matchExpressions": [7]}}, True),
            ({"weight": 1, "preference": {}}, True),
            ({"preference": 3}, True),
            (4, True),
        ],
    )
    def test_the_users_preference(self, own, added):
        affinity = {"nodeAffinity": {PREFERRED: [own]}}
        found, _ = inject(gpu_job(own={"affinity": affinity}), tolerations=False)
        assert found["Worker"]["affinity"] == (prefer(PRESENT, own) if added else affinity)


class TestNodes:
    """Known nodes of the cluster."""

    def test_unknown_nodes_are_only_preferred(self):
        for view in (NothingKnown(), Snapshot([])):
            for strength in ("preferred", "required"):
                assert inject(gpu_job(), view, nodeAffinity=strength) == (
                    {"Worker": {"affinity": prefer()}},
                    [f"added a preference for nodes with {PRESENT}"],
                )

    def test_a_label_that_no_node_has(self):
        view = Snapshot([node("n", **{GPU: "8"})])
        assert inject(gpu_job(), view) == ({}, [])
        assert inject(gpu_job(), view, nodeAffinity="required") == (
            {},
            [f"no node has the label {PRESENT}, so it is not required"],
        )

    @pytest.mark.parametrize(
        ("taints", "resource", "tolerated"),
        [
            (["nvidia.com/gpu:NoSchedule"], GPU, True),
            (["nvidia.com/gpu:NoExecute"], GPU, False),
            (["nvidia.com/gpu:PreferNoSchedule"], GPU, False),
            (["team:NoSchedule", "dedicated:NoSchedule"], GPU, False),
            (["amd.com/gpu:NoSchedule"], GPU, False),
            (["nvidia.com/gpu:NoSchedule"], "amd.com/gpu", False),  # on nodes with another accelerator
            (["nvidia.com/gpu:NoSchedule", "nvidia.com/gpu:NoExecute"], GPU, True),
        ],
    )
    def test_taints_of_gpu_nodes_are_tolerated(self, taints, resource, tolerated):
        found, _ = inject(gpu_job(), Snapshot([node("n", {}, taints, **{resource: "8"})]))
        assert found == ({"Worker": {"tolerations": [TOLERATION]}} if tolerated else {})

    def test_taint_of_nodes_without_the_device_is_not_tolerated(self):
        assert inject(gpu_job(), Snapshot([node("n", {}, ["nvidia.com/gpu:NoSchedule"], **{GPU: "0"})])) == ({}, [])

    def test_taints_that_the_policy_names(self):
        vendors = [{"resources": ["nvidia.com/*"], "taints": ["sku", "pool"]}]
        view = Snapshot([node("n", {}, ["sku:NoSchedule", "team:NoSchedule"], **{GPU: "8"})])
        found, _ = inject(gpu_job(), view, vendors=vendors)
        assert found == {"Worker": {"tolerations": [{**TOLERATION, "key": "sku"}]}}

    @pytest.mark.parametrize("own", [{"operator": "Exists"}, {"key": GPU, "operator": "Exists"}, TOLERATION])
    def test_a_toleration_of_the_users_is_enough(self, own):
        found, _ = inject(gpu_job(own={"tolerations": [own]}), nodeAffinity="off")
        assert found == {"Worker": {"tolerations": [own]}}

    @pytest.mark.parametrize(
        ("label", "resource", "vendor"),
        [
            (PRESENT, "nvidia.com/mig-1g.5gb", GPU),
            ("feature.node.kubernetes.io/amd-gpu", "amd.com/gpu", "amd.com/gpu"),
            ("", "habana.ai/gaudi", "habana.ai/gaudi"),
        ],
    )
    def test_slices_and_other_vendors(self, label, resource, vendor):
        labels = {label: "true"} if label else {}
        view = Snapshot([node("n", labels, [f"{vendor}:NoSchedule"], **{resource: "8"}), GUARDED])
        found, _ = inject(gpu_job(asks={resource: 1}), view)
        placed = {"affinity": prefer(label)} if label else {}
        assert found == {"Worker": {**placed, "tolerations": [{**TOLERATION, "key": vendor}]}}

    def test_a_vendor_without_labels_has_no_products(self):
        view = Snapshot([node("n", {}, ["habana.ai/gaudi:NoSchedule"], **{"habana.ai/gaudi": "8"})])
        found, _ = inject(gpu_job(asks={"habana.ai/gaudi": 1}, product="HL-225"), view, nodeAffinity="required")
        assert found == {"Worker": {"tolerations": [{**TOLERATION, "key": "habana.ai/gaudi"}]}}


class TestClaims:
    """The vendor of devices from resource claims is unknown."""

    JOB = gpu_job(asks={}, own={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]})

    def test_a_preference_at_most(self):
        for strength in ("preferred", "required"):
            assert inject(self.JOB, nodeAffinity=strength)[0] == {"Worker": {"affinity": prefer()}}

    def test_nothing_is_injected_for_an_unknown_vendor(self):
        both = Snapshot([GUARDED, node("a", {"feature.node.kubernetes.io/amd-gpu": "true"})])
        for view in (both, Snapshot([node("n")]), NothingKnown()):
            assert inject(self.JOB, view) == ({}, [])


class TestProduct:
    """A product is a requirement, because the user names it."""

    @pytest.mark.parametrize(
        ("written", "values"),
        [("H100", ["H100"]), (" H100 , A100,H100,", ["H100", "A100"])],
    )
    @pytest.mark.parametrize("strength", ["preferred", "off"])
    def test_as_named(self, written, values, strength):
        found, notes = inject(gpu_job(product=written), nodeAffinity=strength, tolerations=False)
        assert found["Worker"]["affinity"]["nodeAffinity"][REQUIRED] == {
            "nodeSelectorTerms": [{"matchExpressions": [one(PRODUCT, *values)]}]
        }
        assert f"nodes with {PRODUCT} {' or '.join(values)}" in notes[0]

    def test_next_to_the_label_in_every_term(self):
        own = {"affinity": require([one("pool", "a")], [one("pool", "b")])}
        found, _ = inject(gpu_job(product="H100", own=own), nodeAffinity="required", tolerations=False)
        added = one(PRODUCT, "H100"), one(PRESENT)
        assert found["Worker"]["affinity"] == require([one("pool", "a"), *added], [one("pool", "b"), *added])

    def test_both_in_a_term_of_their_own(self):
        found, _ = inject(gpu_job(product="H100"), nodeAffinity="required", tolerations=False)
        assert found["Worker"]["affinity"] == require([one(PRODUCT, "H100"), one(PRESENT)])

    @pytest.mark.parametrize(
        "own", [{"nodeSelector": {PRODUCT: "A100"}}, {"affinity": require([one(PRODUCT, "A100")])}]
    )
    def test_the_users_own_choice_stays(self, own):
        found, notes = inject(gpu_job(product="H100", own=own), nodeAffinity="off", tolerations=False)
        assert found == {"Worker": own}
        assert notes == [f'{ASKED} "H100" has no effect: the job\'s own choice of nodes stays']

    @pytest.mark.parametrize("strength", ["required", "off"])
    def test_a_choice_between_terms_stays_whole(self, strength):
        """Added only to the term with the choice, it would restrict what the user left open."""
        own = {"affinity": require([one(PRODUCT, "A100")], [one("pool", "a")])}
        found, notes = inject(gpu_job(product="H100", own=own), nodeAffinity=strength, tolerations=False)
        terms = found["Worker"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
        assert [[item["key"] for item in term["matchExpressions"] if item["key"] != PRESENT] for term in terms] == [
            [PRODUCT],
            ["pool"],
        ]
        assert [note for note in notes if PRODUCT in note] == []
        assert notes.count(f'{ASKED} "H100" has no effect: the job\'s own choice of nodes stays') == 1

    @pytest.mark.parametrize("strength", ["required", "off"])
    def test_injected_product_is_not_a_user_choice(self, strength):
        policy = only(ID, nodeAffinity=strength)
        first = hold(gpu_job(product="H100"), policy, view=NODES)
        assert mutate(first.document, policy, view=NODES).notes == []

    @pytest.mark.parametrize(
        "written", ["", " , ", "a b", "x" * 64, ",".join(f"p{index}" for index in range(17)), "-", "é"]
    )
    def test_invalid_product_is_reported(self, written):
        found, (note,) = inject(gpu_job(product=written), nodeAffinity="off", tolerations=False)
        assert found == {}
        assert note.endswith("has no effect: not the name of a product, or several with commas")

    def test_without_any_gpu(self):
        job = mpijob(metadata={"annotations": {ASKED: "H100"}})
        assert inject(job) == ({}, [f'{ASKED} "H100" has no effect: no pod requests a GPU'])

    def test_with_a_vendor_that_has_no_label_for_it(self):
        _, (note,) = inject(gpu_job(product="H100", asks={"habana.ai/gaudi": 1}), tolerations=False)
        assert note == f'{ASKED} "H100" has no effect: no known node label has the product'

    def test_product_has_its_own_warning(self):
        decision = hold(gpu_job(product="a b"), policy_of({ID: {}}), view=NODES)
        assert any(ASKED in warning for warning in decision.warnings)
