"""Sockets, the kernel's time stamps, TLS and HTTP: bytes that left and bytes that came, with the time of each."""
