// Command operator-verdict says what the upstream operator thinks of MPIJobs: one JSON object a line in, its list of
// validation errors a line out. Defaults and checks are the operator's own code.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/validation"
)

type verdict struct {
	Field  string `json:"field"`
	Type   string `json:"type"`
	Detail string `json:"detail"`
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		job := &kubeflow.MPIJob{}
		if err := json.Unmarshal(line, job); err != nil {
			log.Fatalf("%v in %s", err, line)
		}
		kubeflow.SetDefaults_MPIJob(job)
		verdicts := []verdict{}
		for _, e := range validation.ValidateMPIJob(job) {
			verdicts = append(verdicts, verdict{e.Field, string(e.Type), e.Detail})
		}
		text, err := json.Marshal(verdicts)
		if err != nil {
			log.Fatal(err)
		}
		out.Write(append(text, '\n'))
		out.Flush()
	}
}
