"""Answers drawn: terminal tables, HTML, Markdown and charts. Reads answers, asks nothing of the rooms.

>>> from servewise.report import render_html, write_html, render_markdown, print_answer, load_answer

``print_answer(answer, console)`` prints tables; ``render_markdown(answers)`` and ``render_html(answers, title=...)``
give text; ``write_html(path, answers, title=...)`` writes one self-contained file; ``load_answer(path)`` reads a
document that ``--json`` wrote. ``answers`` is one Answer, a sequence of them, or a mapping from section to Answer.

The keys read
-------------
CONTRACT fixes each command's keys. Beyond them the report draws these where they stand in ``result``; every key is
optional, a value of the wrong kind counts as absent, and unknown keys are left alone.

size       ``memory_bytes`` (one accelerator), ``context_tokens``, ``breakdown: [{name, bytes, note}]``,
           ``sequences: [{context_tokens, max_sequences}]``,
           ``reconciliation: [{term, predicted_bytes, logged_bytes, difference_bytes, note}]``
steptime   each row: ``floor_s``; ``ridge_batch``, ``ridge_batch_without_kv``, ``phase``
simulate   each row: ``stable``, ``itl_s``, ``e2e_s``; ``knees: [{policy, low_per_s, high_per_s}]``;
           ``slo``: the text ``ttft_p95<=1s, tpot_p95<=50ms`` or ``[{metric, percentile, limit_s}]``;
           ``unit_step: true`` where every step costs 1 s and latencies read in steps
speculate  each row: ``batch``; ``by_batch: [{batch, draft_cost, best_k, speedup}]``;
           ``by_acceptance: [{acceptance, draft_cost, best_k, speedup, rows?: [{k, speedup}]}]``; best_k 0: none pays
prefix     ``reuse_by_depth: [{offset_tokens, hit_rate, requests}]``, ``by_capacity: [{capacity_tokens, hit_rate}]``,
           ``terms``
plan       ``ranking[i].deployment``: ``{title, accelerator, accelerators, parallelism, weights, kv, policy, engine}``
           or its title as text; ``ranking[i]``: ``replicas, ci95_max_rate_per_s, usd_per_hour, kv_peak_share``;
           ``ranking[i].dominated_by: {place, title}``; ``not_ranked: [{deployment, why, dominated_by}]``;
           ``rejected: [{deployment, why}]``;
           ``sensitivity: [{input, change, max_rate_per_s, ratio}]`` (``change`` as text: "-10%");
           ``recommendation: {deployment, text, binds, numbers: [{label, value, unit}]}`` or null with ``closest``
           (the same shape, or text); ``slo``
           (units: s, bytes, usd, per_s, tokens_per_s, tokens, share, ratio, or a word to print behind the value)
any        ``precisions: [{name, weight_bytes, kv_bytes_per_token, step_s, tokens_per_s, batch,
           quality?: {metric, value}}]``: quantisation's bytes against speed, drawn where present (plan, size, steptime)
study      ``tables: [{name, rows: [{..., study, ours, agrees, tolerance}]}]``, ``all_agree``,
           each table ``title, note``, each row ``quantity, unit, study_printed, interval, note`` beside its case;
           ``figures: {name: {title, panels: [{name, title, x_label, y_label, x_scale, y_scale,
           series: [{name, x, y, study, interval}]}]}}``
demo       ``sections: {name: <the document or Answer of a command>}``, or those documents directly under ``result``
"""

from servewise.report.document import load_answer, parse_answer
from servewise.report.html import render_html, write_html
from servewise.report.markdown import render_markdown
from servewise.report.terminal import print_answer, terminal_console

__all__ = [
    "load_answer",
    "parse_answer",
    "print_answer",
    "render_html",
    "render_markdown",
    "terminal_console",
    "write_html",
]
