"""The load client's own error on this machine, against a server whose schedule is known."""
