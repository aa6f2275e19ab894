"""The output of a two-pass job: names, replicas, object storage, commit."""
