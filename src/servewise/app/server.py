"""The page's server: every route, and what it gives."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from servewise.answer import Answer
from servewise.app.answers import Answers
from servewise.app.exports import csv_of, csv_parts, svg_file
from servewise.app.field import field_of
from servewise.app.guard import Guard
from servewise.app.jobs import Ask, Job
from servewise.app.pages import Mistake, answer_part, style, text_of, waiting_part, whole_page
from servewise.app.state import State, state_of
from servewise.app.suggestions import suggestions
from servewise.app.uploads import MOST_BYTES, REFERENCE, Uploads, name_of
from servewise.app.views import VIEWS
from servewise.errors import InputError, ServewiseError

FIRST = "fit"
WRONG, NOT_YET = 422, 409


def page_app(ask: Ask, *, port: int, preload: Sequence[str] = (), runs: Sequence[str] = ()) -> Starlette:
    """The application; ``ask`` gives the Answer of a command line, ``preload`` the modules that it needs.

    ``runs``: run directories and answers that lie ready.
    """
    answers = Answers(ask, preload, runs)

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        threading.Thread(target=_ready, args=(answers,), daemon=True).start()
        yield
        answers.close()

    hosts = [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
    app = Starlette(
        routes=_routes(),
        middleware=[Middleware(Guard, hosts=hosts)],
        lifespan=life,
        exception_handlers={Exception: _defect},
    )
    app.state.answers = answers
    return app


async def _defect(_: Request, error: Exception) -> Response:
    """A defect of ours, told in the form that the page's script reads; the traceback goes to the terminal."""
    return _wrong(Mistake("", f"a defect of servewise ({type(error).__name__}); the terminal shows where"), 500)


def _ready(answers: Answers) -> None:
    """What the first request would wait for: lists, the charts' library, the process that others are forked from."""
    suggestions()
    first = state_of(VIEWS[FIRST], ())
    answers.page(first.view, first.values, answers.now(answers.argv(first.view, first.values)))
    answers.jobs.warm()


def _routes() -> list[Route]:
    return [
        Route("/", lambda _: RedirectResponse(f"/{FIRST}")),
        Route("/static/page.css", lambda _: _text(style(), "text/css")),
        Route("/static/page.js", lambda _: _text(text_of("static", "app.js"), "text/javascript")),
        Route("/uploads", _upload, methods=["POST"]),
        Route("/uploads/{hash}/{name}", _uploaded),
        Route("/jobs/{job}", _how_it_goes),
        Route("/jobs/{job}", _cancel, methods=["DELETE"]),
        Route("/{view}", _page),
        Route("/{view}/answer", _answer),
        Route("/{view}/job", _start, methods=["POST"]),
        Route("/{view}/answer.json", _document),
        Route("/{view}/{part}.csv", _csv),
        Route("/{view}/{number:int}.svg", _svg),
    ]


def _text(text: str, kind: str, name: str = "") -> Response:
    headers = _as_file(name) if name else {"cache-control": "no-cache"}
    return Response(text, media_type=f"{kind}; charset=utf-8", headers=headers)


def _state(request: Request) -> State:
    view = VIEWS.get(request.path_params["view"])
    if view is None:
        raise HTTPException(404, f"there is no such view; there are {', '.join(VIEWS)}")
    return state_of(view, request.query_params.multi_items())


def _answers(request: Request) -> Answers:
    found: Answers = request.app.state.answers
    return found


def _mistake(state: State, error: ServewiseError, uploads: Uploads) -> Mistake:
    """The error as a line beside its field; a file is called by its name, wherever it lies."""
    if not isinstance(error, InputError):
        return Mistake("", str(error))
    line = f"{error.what}; {error.hint}" if error.hint else error.what
    for name, reference in state.files():
        path = uploads.place(reference)
        if path in f"{error.where} {line}":
            where = error.where.replace(path, name_of(reference))
            return Mistake(name, f"{where}: {line}".replace(path, name_of(reference)))
    field = field_of(error, state.view.by_name, state.values)
    return Mistake(field, line if field or not error.where else f"{error.where}: {line}")


async def _page(request: Request) -> Response:
    state, answers = _state(request), _answers(request)
    return HTMLResponse(*await run_in_threadpool(_drawn, state, answers))


def _drawn(state: State, answers: Answers) -> tuple[str, int]:
    """The whole page and its status; a slow view that has not run shows its place alone."""
    try:
        argv = answers.argv(state.view, state.values)
        answer = answers.kept(argv) if state.view.slow else answers.now(argv)
        part = waiting_part(state) if answer is None else answer_part(state, answers, answer)
    except ServewiseError as error:
        if not state.query:  # a form that nobody has touched is not wrong yet
            return whole_page(state, answers, waiting_part(state, can_run=False)), 200
        return whole_page(state, answers, "", _mistake(state, error, answers.uploads)), WRONG
    return whole_page(state, answers, part), 200


async def _answer(request: Request) -> Response:
    return await _with_answer(
        request, lambda state, answer: HTMLResponse(answer_part(state, _answers(request), answer))
    )


async def _document(request: Request) -> Response:
    return await _with_answer(
        request,
        lambda state, answer: _text(answer.dumps() + "\n", "application/json", f"servewise-{state.view.name}.json"),
    )


async def _csv(request: Request) -> Response:
    part = request.path_params["part"]

    def give(state: State, answer: Answer) -> Response:
        if part not in csv_parts(answer):
            raise HTTPException(404, f"there is no such part; there are {', '.join(csv_parts(answer))}")
        return _text(csv_of(answer, part), "text/csv", f"servewise-{state.view.name}-{part}.csv")

    return await _with_answer(request, give)


async def _svg(request: Request) -> Response:
    number = request.path_params["number"]

    def give(state: State, answer: Answer) -> Response:
        page = _answers(request).page(state.view, state.values, answer)
        figures = [figure for section in page.sections for figure in section.figures]
        if not 1 <= number <= len(figures):
            raise HTTPException(404, f"there are {len(figures)} charts")
        return _text(
            svg_file(str(figures[number - 1].svg)), "image/svg+xml", f"servewise-{state.view.name}-{number}.svg"
        )

    return await _with_answer(request, give)


Give = Callable[[State, Answer], Response]


async def _with_answer(request: Request, give: Give) -> Response:
    return await run_in_threadpool(_given, _state(request), _answers(request), give)


def _given(state: State, answers: Answers, give: Give) -> Response:
    try:
        argv = answers.argv(state.view, state.values)
        answer = answers.kept(argv) if state.view.slow else answers.now(argv)
        if answer is None:
            return _wrong(Mistake("", "this has not run yet: run it first"), NOT_YET)
        return give(state, answer)
    except ServewiseError as error:
        return _wrong(_mistake(state, error, answers.uploads))


def _wrong(mistake: Mistake, status: int = WRONG) -> Response:
    return JSONResponse({"field": mistake.field, "line": mistake.line}, status)


async def _start(request: Request) -> Response:
    """Begin a slow view's run for this browser tab, or say that its answer is known."""
    state, answers = _state(request), _answers(request)
    owner = f"{request.headers.get('x-tab', '')[:40]}/{state.view.name}"
    return await run_in_threadpool(_started, state, answers, owner)


def _started(state: State, answers: Answers, owner: str) -> Response:
    try:
        argv = answers.argv(state.view, state.values)
        if answers.kept(argv) is not None:
            return JSONResponse({"state": "done"})
        return JSONResponse(answers.start(owner, argv, state).to_json(), 202)
    except ServewiseError as error:
        return _wrong(_mistake(state, error, answers.uploads))


async def _how_it_goes(request: Request) -> Response:
    answers = _answers(request)
    return _told(answers, answers.jobs.get(request.path_params["job"]))


async def _cancel(request: Request) -> Response:
    answers = _answers(request)
    return _told(answers, answers.jobs.cancel(request.path_params["job"]))


def _told(answers: Answers, job: Job | None) -> Response:
    if job is None:
        raise HTTPException(404, "there is no such run")
    found: dict[str, Any] = job.to_json()
    if job.error is not None:
        mistake = _mistake(job.about, job.error, answers.uploads)
        found |= {"field": mistake.field, "line": mistake.line}
    return JSONResponse(found)


async def _upload(request: Request) -> Response:
    """The body is the file; its name stands in the query."""
    content = bytearray()
    try:
        async for chunk in request.stream():
            content += chunk
            if len(content) > MOST_BYTES:
                return _wrong(Mistake("", f"the file is over {MOST_BYTES // 2**20} MiB; give a part of it"), 413)
    except ClientDisconnect:  # the tab was closed under it: nobody reads this reply
        return _wrong(Mistake("", "the upload was broken off"), 400)
    try:
        reference = _answers(request).uploads.keep(request.query_params.get("name", "file"), bytes(content))
    except InputError as error:
        return _wrong(Mistake("", str(error)))
    return JSONResponse({"reference": reference})


async def _uploaded(request: Request) -> Response:
    reference = f"upload:{request.path_params['hash']}/{request.path_params['name']}"
    if not REFERENCE.fullmatch(reference):
        raise HTTPException(404, "there is no such file")
    try:
        path = _answers(request).uploads.path(reference)
    except InputError:
        raise HTTPException(404, "there is no such file") from None
    with open(path, "rb") as file:
        content = file.read()
    name = request.path_params["name"]
    return Response(content, media_type="application/octet-stream", headers=_as_file(name))


def _as_file(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}
