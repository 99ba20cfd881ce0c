"""What a server says of itself while it is measured, laid over the client's own timeline."""
