// Command kyverno answers AdmissionReviews by Kyverno's engine and the ValidatingPolicy of a file, with the handler of
// Kyverno's own webhook and without what stands around it in a cluster: nothing is watched, reported or recorded.
//
//	kyverno ADDRESS CERTIFICATE KEY POLICY
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	policies "github.com/kyverno/api/api/policies.kyverno.io/v1beta1"
	"github.com/kyverno/kyverno/pkg/cel/libs"
	"github.com/kyverno/kyverno/pkg/cel/matching"
	"github.com/kyverno/kyverno/pkg/cel/policies/vpol/compiler"
	"github.com/kyverno/kyverno/pkg/cel/policies/vpol/engine"
	"github.com/kyverno/kyverno/pkg/event"
	"github.com/kyverno/kyverno/pkg/webhooks/handlers"
	"github.com/kyverno/kyverno/pkg/webhooks/resource/vpol"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func load(path string) (engine.Provider, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	policy := &policies.ValidatingPolicy{}
	if err := yaml.UnmarshalStrict(text, policy); err != nil {
		return nil, err
	}
	return engine.NewProvider(compiler.NewCompiler(), []policies.ValidatingPolicyLike{policy}, nil)
}

func namespace(name string) *core.Namespace {
	return &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: name}}
}

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: kyverno ADDRESS CERTIFICATE KEY POLICY")
	}
	provider, err := load(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	judge := vpol.New(engine.NewEngine(provider, namespace, matching.NewMatcher()), libs.GetLibsCtx(), nil, false, event.NewFake())
	review := func(ctx context.Context, logger logr.Logger, request handlers.AdmissionRequest, start time.Time) handlers.AdmissionResponse {
		return judge.ValidateClustered(ctx, logger, request, "", start)
	}
	http.HandleFunc("/", handlers.FromAdmissionFunc("VALIDATE", review).WithAdmission(logr.Discard()).ToHandlerFunc("VALIDATE"))
	log.Fatal(http.ListenAndServeTLS(os.Args[1], os.Args[2], os.Args[3], nil))
}
