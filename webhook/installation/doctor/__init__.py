"""What is wrong with an installation and what to do: read from the cluster (`gather`), judged by `checks`, shown."""
