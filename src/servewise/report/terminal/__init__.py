"""Answers on a terminal: conditions first, then tables that fit its width, caveats with their cures last."""

from servewise.report.terminal.printing import print_answer, terminal_console

__all__ = ["print_answer", "terminal_console"]
