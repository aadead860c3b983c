"""Generates the Helm chart from the manifests for kustomize."""
