// Command allow-server is a minimal Go webhook, with which the benchmarks compare the service. It decodes the
// AdmissionReview with encoding/json, but not the object in it, and allows every request.
//
//	allow-server ADDRESS CERTIFICATE KEY
package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"

	admission "k8s.io/api/admission/v1"
)

func review(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 7<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	in := admission.AdmissionReview{}
	if err := json.Unmarshal(body, &in); err != nil || in.Request == nil {
		http.Error(w, "not an AdmissionReview", http.StatusBadRequest)
		return
	}
	out := admission.AdmissionReview{TypeMeta: in.TypeMeta}
	out.Response = &admission.AdmissionResponse{UID: in.Request.UID, Allowed: true}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(out); err != nil {
		log.Print(err)
	}
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: allow-server ADDRESS CERTIFICATE KEY")
	}
	http.HandleFunc("/", review)
	log.Fatal(http.ListenAndServeTLS(os.Args[1], os.Args[2], os.Args[3], nil))
}
