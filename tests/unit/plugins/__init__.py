"""Tests of webhook/plugins."""
