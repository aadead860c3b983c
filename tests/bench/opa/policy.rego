# Ten of the service's rules, with which the benchmarks measure Open Policy Agent. Jobs are as the API server stores them.
package mpijob

spec := input.request.object.spec

replicas := object.get(spec, "mpiReplicaSpecs", {})

workers := object.get(object.get(replicas, "Worker", {}), "replicas", 0)

containers contains container if {
	some role, replica in replicas
	some container in replica.template.spec.containers
}

gpus contains gpu if {
	some container in containers
	some name, gpu in object.get(container, ["resources", "limits"], {})
	endswith(name, "/gpu")
}

deny contains "worker-count: at least 2 workers" if workers < 2

deny contains "worker-count: at most 100 workers" if workers > 100

deny contains "gpus: at most 16 for each worker" if {
	some gpu in gpus
	to_number(gpu) > 16
}

deny contains "slots: at least 1, at most 8" if not spec.slotsPerWorker in numbers.range(1, 8)

deny contains "upstream-contract: one launcher" if replicas.Launcher.replicas != 1

deny contains "upstream-contract: cleanPodPolicy" if {
	not object.get(spec, ["runPolicy", "cleanPodPolicy"], "None") in {"None", "Running", "All"}
}

deny contains "upstream-contract: sshAuthMountPath is for the operator's own files" if {
	trim_right(spec.sshAuthMountPath, "/") == "/etc/mpi"
}

deny contains "upstream-contract: a name that its pods can have" if {
	count(input.request.object.metadata.name) > 54
}

deny contains "upstream-contract: backoffLimit" if object.get(spec, ["runPolicy", "backoffLimit"], 0) < 0

deny contains "pod-template: a container needs an image" if {
	some container in containers
	object.get(container, "image", "") == ""
}

review := {
	"apiVersion": "admission.k8s.io/v1",
	"kind": "AdmissionReview",
	"response": {
		"uid": input.request.uid,
		"allowed": count(deny) == 0,
		"status": {"message": concat("; ", deny)},
	},
}
