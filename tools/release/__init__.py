"""What is made of a revision for others: the bundle for clusters without a network, and the list of licences."""
