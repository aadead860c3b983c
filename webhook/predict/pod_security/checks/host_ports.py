"""No container takes a port of the host.

With `hostNetwork: true` every port is one: there the API server sets `hostPort` to `containerPort` before the pod is
judged (`SetDefaults_Pod` in k8s.io/kubernetes `pkg/apis/core/v1/defaults.go`).

**Restricted fields:**
- `spec.containers[*].ports[*].hostPort`

**Allowed values:** unset, `0`
"""

from webhook.predict.pod_security.checks import Result, Revision, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.pod import PodTemplate, Port
from webhook.predict.pod_security.subject import Subject
from webhook.predict.pod_security.texts import containers, plural

ID = "hostPorts"


def takes_no_host_port(pod: Subject) -> Result | None:
    """Whatever the protocol and address."""
    on_host = bool(pod.spec.host_network)
    bad, ports, paths = [], set(), []
    for place in pod.containers:
        given = place.container.ports or ()
        taken = [(i, number) for i, port in enumerate(given) if (number := _host_port(port, on_host=on_host))]
        if taken:
            bad.append(place)
            ports |= {str(number) for _, number in taken}
            paths += [f"{place.path}.ports[{i}].hostPort" for i, _ in taken]
    if not bad:
        return None
    use = f"{plural('uses', 'use', bad)} {plural('hostPort', 'hostPorts', ports)}"
    return Result(ID, "hostPort", f"{containers(bad)} {use} {', '.join(sorted(ports))}", tuple(paths))


def only_by_host_network(result: Result, template: PodTemplate) -> bool:
    """Whether the template states no port of the host, and has some by `hostNetwork: true` alone."""
    places = Subject(template).containers
    return result.check == ID and not any(port.host_port for place in places for port in place.container.ports or ())


def _host_port(port: Port, *, on_host: bool) -> int | None:
    return port.host_port or (port.container_port if on_host else None)


register(ID, Level.BASELINE, Revision(Version(0), takes_no_host_port))
