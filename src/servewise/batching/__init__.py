"""Who runs next: sequences, the KV block pool, the prefix cache and the policies, without clock or tensors."""
