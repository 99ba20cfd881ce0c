"""Load for OpenAI-compatible servers, with times that bytes left and came, and with the client's own error known."""
