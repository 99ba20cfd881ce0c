"""A planned deployment as each engine takes it: command lines, configs, a Kubernetes manifest."""
