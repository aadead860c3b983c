// Command mpi-operator is the upstream operator with one change: its health port, which is constant upstream
// (https://github.com/kubeflow/mpi-operator/blob/v0.8.0/cmd/mpi-operator/app/server.go#L65), is a flag,
// so that several clusters can run on a host, and port 8080 is free for other programs.
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
