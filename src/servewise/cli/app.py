"""``servewise app``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from servewise.cli.quantities import WHOLE
from servewise.errors import InputError

PRELOADED = (
    "servewise.cli.asked",
    "servewise.cli.main",
    "servewise.cli.simulate",
    "servewise.ask.simulate",
    "servewise.ask.plan",
)


@click.command("app")
@click.argument("runs", nargs=-1, metavar="[RUN_OR_ANSWER]...")
@click.option("--port", type=WHOLE, default=8010, show_default=True, help="0 takes any free one.")
@click.option("--browser/--no-browser", default=True, help="Open the page in the browser.")
def command(runs: tuple[str, ...], *, port: int, browser: bool) -> None:
    """The same questions as a page in the browser, on this machine alone: nothing is sent anywhere.

    RUN_OR_ANSWER: run directories, or answers that --json wrote, to lie ready under Runs. It runs until Ctrl-C. Needs
    servewise[app].
    """
    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise InputError("the page's server is not installed", where="app", hint="pip install 'servewise[app]'")
    from servewise.app.serving import bound, serve
    from servewise.cli.asked import answer_of

    for run in runs:
        if not Path(run).exists():
            raise InputError("no such run or answer", where=run)
    socket = bound(port)
    address = f"http://127.0.0.1:{socket.getsockname()[1]}/"
    click.echo(f"servewise: the page is at {address} (Ctrl-C ends it)", err=True)
    if browser:
        click.launch(address)
    serve(socket, answer_of, preload=PRELOADED, runs=runs)
