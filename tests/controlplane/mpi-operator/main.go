// Command mpi-operator is the upstream operator, unchanged but for one thing: its health port, fixed upstream
// (https://github.com/kubeflow/mpi-operator/blob/v0.8.0/cmd/mpi-operator/app/server.go#L65), is a flag here,
// so that several clusters fit on one host and nothing else may need port 8080.
package main

import (
	"flag"
	_ "unsafe" // for go:linkname

	"github.com/kubeflow/mpi-operator/cmd/mpi-operator/app"
	"github.com/kubeflow/mpi-operator/cmd/mpi-operator/app/options"
	"k8s.io/klog/v2"
)

//go:linkname healthCheckPort github.com/kubeflow/mpi-operator/cmd/mpi-operator/app.healthCheckPort
var healthCheckPort int

func main() {
	klog.InitFlags(nil)
	opts := options.NewServerOption()
	opts.AddFlags(flag.CommandLine)
	flag.IntVar(&healthCheckPort, "health-port", healthCheckPort, "Port of /healthz.")
	flag.Parse()
	klog.Fatal(app.Run(opts))
}
