"""The Helm chart, generated out of the manifests for kustomize: one source of truth, and neither can drift."""
