"""Release artifacts: the bundle for clusters without a network, and the list of licences."""
