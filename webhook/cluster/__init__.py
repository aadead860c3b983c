"""What is known of the cluster."""
