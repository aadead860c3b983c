"""Generates the Helm chart from the manifests for kustomize, so that both are always the same."""
