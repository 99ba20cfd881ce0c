"""Speculation as the scheduler sees it: members that gain a drawn number of tokens a step, and how many are drafted."""
