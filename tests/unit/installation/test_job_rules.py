"""promtool of Prometheus tests the recording rules, which combine the job metrics of the replicas."""

import re
from pathlib import Path

from tests.support import promtool
from tests.support.prometheus import rule_groups
from webhook.parts.job_metrics.metrics import JOB_METRICS
from webhook.server.metrics import JOB_PREFIX

CREATED = f"{JOB_PREFIX}created_total"
RUNNING = f"{JOB_PREFIX}running"
# One job per minute is created, and each replica counts all jobs. The first replica ends after 60 minutes. The
# second replica starts after 50 minutes, and counts from 0.
SERIES = {
    f'{CREATED}{{namespace="team-a",pod="first"}}': "100+1x60",
    f'{CREATED}{{namespace="team-a",pod="second"}}': "_x50 0+1x70",
    f'{RUNNING}{{namespace="team-a",pod="first"}}': "3x60",
    f'{RUNNING}{{namespace="team-a",pod="second"}}': "_x50 3x70",
}
RATE = "namespace:training_operator_mpijob_created:rate5m"


GROUPS = rule_groups("job-rules.yaml")


def test_recording_rules_use_existing_metrics() -> None:
    ours = {metric.name: set(metric.labels) for metric in JOB_METRICS}
    for rule in GROUPS[0]["rules"]:
        ((labels, name),) = re.findall(rf"^max by \((.+?)\) .*\b({JOB_PREFIX}\w+)", rule["expr"])
        assert set(labels.split(", ")) == ours[name]
        assert rule["record"] not in ours


def test_restarted_replicas_do_not_change_the_sums(tmp_path: Path) -> None:
    expected = {
        f"{RUNNING}_total": {f'{RUNNING}_total{{namespace="team-a"}}': 3},
        f"round(avg_over_time({RATE}[90m]) * 5400)": {'{namespace="team-a"}': 90},
    }
    promtool.check_rules(GROUPS, [promtool.case(SERIES, expected, minutes=100)], tmp_path)


def test_gpu_hours_are_the_sum_of_minutes(tmp_path: Path) -> None:
    """8 GPUs for an hour and 2 GPUs for half an hour are 9 GPU hours, although two replicas report the same jobs."""
    of = f'{JOB_PREFIX}user_gpus_in_use{{namespace="team-a",user="alice",resource="nvidia.com/gpu"'
    series = {f'{of},pod="first"}}': "_x10 8x19 10x9 _x60", f'{of},pod="second"}}': "_x10 8x29 10x29 stale"}
    recorded = "namespace_user:training_operator_mpijob_gpus_in_use:max"
    query = f"round(sum by (namespace, user) (sum_over_time({recorded}[2h:1m])) / 60)"
    expected = {query: {'{namespace="team-a", user="alice"}': 9}}
    promtool.check_rules(GROUPS, [promtool.case(series, expected, minutes=110)], tmp_path)


WORKER = 'namespace="team-a",pod="train-worker-1"'
LAUNCHER = 'namespace="team-a",pod="train-launcher-x7k2p"'
OTHER = 'namespace="team-a",pod="web-0"'
EXPORTER = 'namespace="gpu-operator",pod="nvidia-dcgm-exporter-9f2ql"'
PODS = {
    f'kube_pod_owner{{{WORKER},owner_kind="MPIJob",owner_name="train",owner_is_controller="true"}}': 1,
    f'kube_pod_owner{{{LAUNCHER},owner_kind="Job",owner_name="train-launcher",owner_is_controller="true"}}': 1,
    f'kube_pod_owner{{{OTHER},owner_kind="StatefulSet",owner_name="web",owner_is_controller="true"}}': 1,
    'kube_pod_owner{namespace="team-a",pod="own-launcher-p8z4x",owner_kind="Job",owner_name="own-launcher"}': 1,
    'kube_job_owner{namespace="team-a",job_name="train-launcher",owner_kind="MPIJob",owner_name="train"}': 1,
    'kube_job_owner{namespace="team-a",job_name="own-launcher",owner_kind="CronJob",owner_name="own"}': 1,
    f'kube_pod_container_status_restarts_total{{{WORKER},container="worker"}}': 2,
    f'kube_pod_container_status_restarts_total{{{WORKER},container="sidecar"}}': 1,
    f'kube_pod_container_status_restarts_total{{{LAUNCHER},container="launcher"}}': 5,
    f'kube_pod_container_status_restarts_total{{{OTHER},container="web"}}': 9,
    f'DCGM_FI_DEV_GPU_UTIL{{{WORKER},gpu="0",UUID="GPU-a",container="worker"}}': 90,
    f'DCGM_FI_DEV_GPU_UTIL{{{EXPORTER},exported_namespace="team-a",exported_pod="train-worker-1",gpu="1"}}': 10,
    f'DCGM_FI_DEV_GPU_UTIL{{{EXPORTER},gpu="2",UUID="GPU-c"}}': 50,
    f'DCGM_FI_DEV_GPU_UTIL{{{OTHER},gpu="3",UUID="GPU-d"}}': 70,
}
ID = 'job_name="train",role="worker",worker_id="1"'


def test_pod_metrics_get_the_name_of_the_job_that_owns_the_pod(tmp_path: Path) -> None:
    expected = {
        "mpijob_pod_info": {
            f"mpijob_pod_info{{{WORKER},{ID}}}": 1,
            f'mpijob_pod_info{{{LAUNCHER},job_name="train",role="launcher"}}': 1,
        },
        "mpijob_worker_restarts": {
            'mpijob_worker_restarts{namespace="team-a",job_name="train",worker_id="1"}': 3,
        },
        "mpijob_gpu_utilization": {
            f'mpijob_gpu_utilization{{{WORKER},{ID},gpu_id="0"}}': 90,
            f'mpijob_gpu_utilization{{{WORKER},{ID},gpu_id="1"}}': 10,
        },
    }
    series = {each: f"{value}x9" for each, value in PODS.items()}
    promtool.check_rules(GROUPS, [promtool.case(series, expected, minutes=5)], tmp_path)
