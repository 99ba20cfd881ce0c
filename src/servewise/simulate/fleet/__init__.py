"""Several replicas on one timeline, behind a router: failures, restarts, scaling, ranks in lockstep."""
