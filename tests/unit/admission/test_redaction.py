"""What may be secret is not in a record, and what rules look at is."""

import json
from typing import Any

import pytest
from hypothesis import given

from tests.support.jobs import GOOD, changed
from tests.support.strategies import PROPERTY, json_values
from webhook.admission.redaction import REDACTED, redacted

SECRET = "s3cr3t-value"
WORKER = "Worker.template.spec.containers.0"


def taken_out(changes: dict[str, Any]) -> tuple[str, int]:
    copy, count = redacted(changed(changes))
    return json.dumps(copy), count


@pytest.mark.parametrize(
    "changes",
    [
        {f"{WORKER}.env": [{"name": "WANDB_API_KEY", "value": SECRET}]},
        {f"{WORKER}.env": [{"name": "NCCL_AUTH", "value": f"token={SECRET}"}]},
        {f"{WORKER}.args": [f"--api-key={SECRET}"]},
        {f"{WORKER}.args": ["--password", SECRET]},
        {f"{WORKER}.command": ["bash", "-c", f"export AWS_SECRET_ACCESS_KEY={SECRET} && mpirun x"]},
        {f"{WORKER}.args": ["--password", f"two {SECRET}"]},
        {f"{WORKER}.command": ["bash", "-c", f"export DB_PASSWORD='two {SECRET}'; mpirun x"]},
        {f"{WORKER}.command": ["bash", "-c", f'export HF_TOKEN="{SECRET}"; mpirun x']},
        {f"{WORKER}.command": ["bash", "-c", f"PASSWORD  =  {SECRET}; MYSQL_PWD={SECRET} PRIVATE_KEY={SECRET} x"]},
        {f"{WORKER}.command": ["bash", "-c", f"login --token '{SECRET} never closed"]},
        {f"{WORKER}.args": [f'{{"password": "{SECRET}", "other": 1}}']},
        {f"{WORKER}.command": ["git", "clone", f"https://{SECRET}@git.example.com/x"]},
        {"metadata.annotations": {"kapp.k14s.io/original": json.dumps({"env": [{"name": "A", "value": SECRET}]})}},
        {f"{WORKER}.livenessProbe": {"httpGet": {"path": f"/healthy?token={SECRET}"}}},
        {"metadata.annotations": {"example.com/copy": json.dumps({"text": json.dumps({"token": SECRET})})}},
        {f"{WORKER}.command": ["curl", "-H", f"Authorization: Bearer {SECRET}"]},
        {f"{WORKER}.command": ["git", "clone", f"https://bob:{SECRET}@git.example.com/x"]},
        {"metadata.annotations": {"kubectl.kubernetes.io/last-applied-configuration": f'{{"env": "{SECRET}"}}'}},
        {"metadata.annotations": {"example.com/notes": f"the password: {SECRET}"}},
        {"metadata.managedFields": [{"manager": SECRET}]},
        {f"{WORKER}.livenessProbe": {"httpGet": {"httpHeaders": [{"name": "X", "value": SECRET}]}}},
        {"Worker.template.spec.volumes": [{"name": "v", "csi": {"driver": "d", "volumeAttributes": {"k": SECRET}}}]},
        {"Worker.template.spec.volumes": [{"name": "v", "flexVolume": {"driver": "d", "options": {"k": SECRET}}}]},
        {"Launcher.template.spec.initContainers": [{"name": "i", "env": [{"name": "X", "value": SECRET}]}]},
    ],
)
def test_a_secret_is_taken_out(changes: dict[str, Any]) -> None:
    text, _ = taken_out(changes)
    assert SECRET not in text


def test_what_is_taken_out_is_counted_and_marked() -> None:
    text, count = taken_out({f"{WORKER}.env": [{"name": "A", "value": "x"}, {"name": "B", "value": ""}, {"name": "C"}]})
    assert count == 1
    assert text.count(REDACTED) == 1


@pytest.mark.parametrize(
    "kept",
    [
        {f"{WORKER}.env": [{"name": "OMPI_MCA_btl", "value": "tcp,self"}, {"name": "NCCL_DEBUG", "value": "INFO"}]},
        {f"{WORKER}.env": [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "k"}}}]},
        {
            f"{WORKER}.command": [
                "mpirun",
                "-np",
                "8",
                "-x",
                "NCCL_DEBUG",
                "python",
                "train.py",
                "--tokens-per-batch",
                "7",
            ]
        },
        {f"{WORKER}.args": ["--tokenizer", "bert", "https://example.com:8080/a@b"]},
        {"metadata.annotations": {"training.openshift.io/exempt": "images", "a": '{ "b":1}', "c": "{", "d": "[" * 99}},
        {"metadata.labels": {"a": "b"}},
    ],
)
def test_what_rules_look_at_stays(kept: dict[str, Any]) -> None:
    job = changed(kept)
    copy, count = redacted(job)
    assert (copy, count) == (job, 0)


def test_the_job_itself_is_not_changed() -> None:
    job = changed({f"{WORKER}.env": [{"name": "A", "value": "x"}]})
    before = json.dumps(job)
    redacted(job)
    assert json.dumps(job) == before
    assert redacted(GOOD)[0] == GOOD


@PROPERTY
@given(json_values())
def test_any_json_goes_through(value: Any) -> None:
    copy, _ = redacted({"metadata": value, "spec": {"env": value, "args": value, "annotations": value}})
    assert redacted(copy)[0] == copy, "twice is once"
