// Command operator-verdict validates MPIJobs with the upstream operator's code for defaults and validation. For each
// line with a JSON object, it prints a line with the list of validation errors.
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
