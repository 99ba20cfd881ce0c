"""Prefill on one pool of servers, decode on another, the KV cache moved over links between them."""
