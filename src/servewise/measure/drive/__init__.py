"""Sends what a schedule wants when it wants it, over one loop a process, and hands back what came."""
