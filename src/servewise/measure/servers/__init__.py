"""Launchers of real servers: started in environments of their own, measured, and stopped again whatever happens."""
