"""Routers, one file each: which replica gets a request, by what a router knows at that time."""
