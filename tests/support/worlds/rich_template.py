"""A valid pod template with nearly every field that the API server validates."""

from typing import Any, Final

_SELECTOR: Final = {
    "matchLabels": {"app": "train"},
    "matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold"]}],
}
_TERM: Final = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": _SELECTOR,
    "namespaces": ["team-a"],
    "namespaceSelector": {"matchLabels": {"team": "a"}},
    "matchLabelKeys": ["pod-template-hash"],
}
_NODES: Final = {
    "matchExpressions": [
        {"key": "gpu", "operator": "In", "values": ["a100"]},
        {"key": "memory", "operator": "Gt", "values": ["64"]},
        {"key": "spot", "operator": "DoesNotExist"},
    ],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}],
}
_HTTP: Final = {"port": 8080, "path": "/ready", "scheme": "HTTP", "httpHeaders": [{"name": "X-Probe", "value": "1"}]}
_ITEMS: Final = [{"key": "a.txt", "path": "a/b.txt", "mode": 0o400}]
_DOWNWARD: Final = [
    {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
    {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu", "divisor": "1m"}},
]
_CLAIM: Final = {
    "metadata": {"labels": {"use": "scratch"}},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "10Gi"}},
        "storageClassName": "fast",
        "volumeMode": "Filesystem",
    },
}
_VOLUMES: Final = [
    {"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
    {"name": "data", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
    {"name": "host", "hostPath": {"path": "/opt/tools", "type": "Directory"}},
    {"name": "config", "configMap": {"name": "config", "items": _ITEMS, "defaultMode": 0o644}},
    {"name": "secret", "secret": {"secretName": "secret", "items": _ITEMS, "optional": True}},
    {"name": "pod-info", "downwardAPI": {"items": _DOWNWARD}},
    {"name": "share", "nfs": {"server": "nfs.example.com", "path": "/export"}},
    {"name": "driver", "csi": {"driver": "csi.example.com", "nodePublishSecretRef": {"name": "csi"}}},
    {"name": "own", "ephemeral": {"volumeClaimTemplate": _CLAIM}},
    {"name": "model", "image": {"reference": "registry.example.com/ml/model:1.0", "pullPolicy": "IfNotPresent"}},
    {
        "name": "all",
        "projected": {
            "sources": [
                {"configMap": {"name": "config", "items": [{"key": "b", "path": "b"}]}},
                {"secret": {"name": "secret"}},
                {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
            ]
        },
    },
]
_MAIN: Final = {
    "name": "main",
    "image": "registry.example.com/ml/train:1.4",
    "imagePullPolicy": "IfNotPresent",
    "command": ["/usr/sbin/sshd"],
    "args": ["-De"],
    "workingDir": "/work",
    "ports": [
        {"name": "ssh", "containerPort": 2222, "protocol": "TCP"},
        {"name": "http", "containerPort": 8080, "hostPort": 8080},
    ],
    "env": [
        {"name": "PLAIN", "value": "1"},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1"}}},
        {"name": "SETTING", "valueFrom": {"configMapKeyRef": {"name": "config", "key": "a.txt"}}},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "secret", "key": "password", "optional": True}}},
    ],
    "envFrom": [{"configMapRef": {"name": "config"}, "prefix": "C_"}, {"secretRef": {"name": "secret"}}],
    "resources": {
        "requests": {"cpu": "2", "memory": "8Gi", "ephemeral-storage": "1Gi", "rdma/hca": 1, "hugepages-2Mi": "64Mi"},
        "limits": {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "2Gi", "rdma/hca": 1, "hugepages-2Mi": "64Mi"},
        "claims": [{"name": "nic"}],
    },
    "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
    "volumeMounts": [
        {"name": "scratch", "mountPath": "/scratch", "subPath": "a/b"},
        {"name": "data", "mountPath": "/data", "readOnly": True, "recursiveReadOnly": "IfPossible"},
        {"name": "host", "mountPath": "/tools", "mountPropagation": "HostToContainer"},
    ],
    "livenessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 10, "terminationGracePeriodSeconds": 5},
    "readinessProbe": {"tcpSocket": {"port": "ssh"}, "successThreshold": 2, "initialDelaySeconds": 1},
    "startupProbe": {"httpGet": _HTTP, "failureThreshold": 30},
    "lifecycle": {"preStop": {"sleep": {"seconds": 5}}, "postStart": {"exec": {"command": ["true"]}}},
    "terminationMessagePolicy": "File",
    "securityContext": {
        "runAsUser": 1000,
        "runAsGroup": 1000,
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"add": ["IPC_LOCK"], "drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
        "appArmorProfile": {"type": "RuntimeDefault"},
        "procMount": "Default",
    },
}
_SIDECAR: Final = {
    "name": "proxy",
    "image": "registry.example.com/ml/proxy:1.0",
    "restartPolicy": "Always",
    "startupProbe": {"grpc": {"port": 9000}},
}

RICH: Final[dict[str, Any]] = {
    "metadata": {"labels": {"app": "train"}, "annotations": {"example.com/Owner": "vision"}},
    "spec": {
        "containers": [_MAIN],
        "initContainers": [_SIDECAR, {"name": "wait", "image": "busybox:1.37", "command": ["true"]}],
        "volumes": _VOLUMES,
        "resourceClaims": [{"name": "nic", "resourceClaimTemplateName": "nic"}],
        "nodeSelector": {"node-role": "gpu"},
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "team", "operator": "Equal", "value": "a", "effect": "NoExecute", "tolerationSeconds": 60},
        ],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_NODES]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "preference": _NODES}],
            },
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [_TERM],
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": _TERM}],
            },
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]},
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": _SELECTOR,
                "minDomains": 2,
                "nodeAffinityPolicy": "Honor",
                "nodeTaintsPolicy": "Ignore",
            }
        ],
        "securityContext": {
            "fsGroup": 1000,
            "fsGroupChangePolicy": "OnRootMismatch",
            "runAsUser": 1000,
            "supplementalGroups": [2000],
            "supplementalGroupsPolicy": "Merge",
            "seccompProfile": {"type": "Localhost", "localhostProfile": "profiles/train.json"},
            "sysctls": [{"name": "net.core.somaxconn", "value": "1024"}],
        },
        "dnsPolicy": "ClusterFirst",
        "dnsConfig": {
            "nameservers": ["10.0.0.10"],
            "searches": ["example.com"],
            "options": [{"name": "ndots", "value": "2"}],
        },
        "hostAliases": [{"ip": "10.0.0.5", "hostnames": ["storage.example.com"]}],
        "imagePullSecrets": [{"name": "registry"}],
        "terminationGracePeriodSeconds": 30,
        "readinessGates": [{"conditionType": "example.com/ready"}],
        "schedulingGates": [{"name": "example.com/gate"}],
        "os": {"name": "linux"},
    },
}
