"""TLS for webhooks: an authority, serving certificates and CA bundles. Imports nothing of `webhook`."""
