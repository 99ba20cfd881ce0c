"""Where independent tasks are done: here, by processes of this machine or on a Ray cluster; the same results."""
