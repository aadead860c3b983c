"""The Grafana dashboard of the component `monitoring`: what it asks, how it is built, run and drawn.

`panels` has every query, `build` makes Grafana's JSON of them, `run` lets a real Prometheus scrape a real run, and
`draw` draws what each panel then shows.
"""
