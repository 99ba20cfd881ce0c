"""Answers drawn: HTML, Markdown, JSON and charts. Reads answers and records, asks nothing of the rooms."""
