// Command gitops returns the results of Argo CD and Flux, with their code. Each mode reads JSON and writes JSON:
// `diff KUBECONFIG MANAGER` {"config", "live"}: for each comparison mode of Argo CD, whether the job is out of sync.
// `health SCRIPT` an object: the result of Argo CD's health check in Lua.
// `status EXPRESSIONS` an object: its status by Flux's healthCheckExprs, which are JSON.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/tracing"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"github.com/go-logr/logr"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	switch os.Args[1] {
	case "diff":
		compare(os.Args[2], os.Args[3])
	case "health":
		health(os.Args[2])
	case "status":
		status(os.Args[2])
	}
}

type difference struct {
	OutOfSync bool            `json:"outOfSync"`
	Live      json.RawMessage `json:"live"`
	Predicted json.RawMessage `json:"predicted"`
}

func compare(kubeconfig, manager string) {
	var in struct{ Config, Live map[string]any }
	must(json.NewDecoder(os.Stdin).Decode(&in))
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(err)
	ctl := &kube.KubectlCmd{Log: logr.Discard(), Tracer: tracing.NopTracer{}}
	_, parser, err := ctl.LoadOpenAPISchema(config)
	must(err)
	applier, cleanup, err := ctl.ManageServerSideDiffDryRuns(config)
	must(err)
	defer cleanup()
	common := []diff.Option{diff.WithLogr(logr.Discard()), diff.WithGVKParser(parser), diff.WithManager(manager)}
	out := map[string]difference{}
	for name, option := range map[string]diff.Option{
		"default":           diff.WithStructuredMergeDiff(false),
		"server-side apply": diff.WithStructuredMergeDiff(true),
		"server-side diff":  diff.WithServerSideDiff(true),
	} {
		runner := diff.WithServerSideDryRunner(diff.NewK8sServerSideDryRunner(applier))
		desired, live := &unstructured.Unstructured{Object: in.Config}, &unstructured.Unstructured{Object: in.Live}
		result, err := diff.Diff(desired.DeepCopy(), live.DeepCopy(), append(common, option, runner)...)
		must(err)
		out[name] = difference{result.Modified, result.NormalizedLive, result.PredictedLive}
	}
	must(json.NewEncoder(os.Stdout).Encode(out))
}

// health runs the script like Argo CD: the object is the global `obj`, and the result is a table.
func health(script string) {
	var object any
	must(json.NewDecoder(os.Stdin).Decode(&object))
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for _, open := range []lua.LGFunction{lua.OpenBase, lua.OpenTable} {
		open(state)
	}
	state.SetGlobal("obj", value(state, object))
	must(state.DoFile(script))
	result := state.Get(-1).(*lua.LTable)
	answer := map[string]string{}
	for _, key := range []string{"status", "message"} {
		answer[key] = lua.LVAsString(result.RawGetString(key))
	}
	must(json.NewEncoder(os.Stdout).Encode(answer))
}

func status(expressions string) {
	var check kustomize.HealthCheckExpressions
	must(json.Unmarshal([]byte(expressions), &check))
	evaluator, err := cel.NewStatusEvaluator(&check)
	must(err)
	object := &unstructured.Unstructured{}
	must(json.NewDecoder(os.Stdin).Decode(&object.Object))
	result, err := evaluator.Evaluate(context.Background(), object)
	must(err)
	must(json.NewEncoder(os.Stdout).Encode(map[string]string{"status": string(result.Status)}))
}

func value(state *lua.LState, of any) lua.LValue {
	switch typed := of.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, each := range typed {
			table.RawSetString(key, value(state, each))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, each := range typed {
			table.Append(value(state, each))
		}
		return table
	case string:
		return lua.LString(typed)
	case float64:
		return lua.LNumber(typed)
	case bool:
		return lua.LBool(typed)
	}
	return lua.LNil
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
