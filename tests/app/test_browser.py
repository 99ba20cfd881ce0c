"""The page in a real browser, end to end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.app.browser import PATIENCE_MS, Watch, chromium, settled, shot, started, tidy
from tests.cli.running import invoke

QUICK = "workload=own&requests=30&rate=1,4,8&estimator=ideal"
LONG = "workload=own&requests=200000&rate=1,2&seeds=1&policy=vllm&estimator=ideal"
# Each view's address, and for each of its charts what its axes must say: a label, and how a tick with its unit reads.
VIEWS = {
    "fit": ("", [("GiB on one accelerator", r"\d")]),
    "steptime": ("", [("Batch (sequences in one step)", r"\d ms")]),
    "traffic": (QUICK, [("Requests per second", r"\d m?s"), ("TTFT p95", r"\d m?s"), ("TPOT p95", r"\d m?s")]),
    "speculation": (
        "",
        [("Draft tokens K", r"\d×"), ("Batch (sequences in one step)", r"\d×"), ("Acceptance rate", r"\d×")],
    ),
    "bits": ("", [("Weights on one accelerator (GiB)", r"\d"), ("Tokens per second, batch 8", r"\d")]),
    "prefix": ("log=rag", [("Position in the prompt (tokens)", r"\d%"), ("Tokens the cache holds", r"\d%")]),
    "plan": ("workload=own&requests=60&accelerators=h100-sxm,l4&counts=1&carry=1&estimator=ideal", []),
    "runs": ("runs=run:0,run:1", [("Latency", r"\d m?s")]),
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two small runs."""
    folder = tmp_path_factory.mktemp("runs")
    for policy in ("static", "continuous"):
        found = invoke(
            "simulate", "llama-3-8b", "--accelerator", "h100-sxm", "--workload", "azure-conv", "--requests", "30",
            "--rate", "2", "--estimator", "ideal", "--policy", policy, "--run-dir", str(folder / policy),
        )  # fmt: skip
        assert found.exit_code == 0, found.output
    return [folder / "static", folder / "continuous"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for all tests; each has contexts of its own."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def address(runs: list[Path], browser: Any) -> Iterator[str]:
    """The page, started with the runs."""
    with started(*runs) as found:
        yield found


Open = Callable[..., Any]


@pytest.fixture
def opened(browser: Any, address: str) -> Iterator[Open]:
    """``opened("fit?count=2")``: a page of a fresh browser; afterwards, it was silent and asked nobody else."""
    contexts, watched = [], []

    def open_page(path: str, beside: Any = None, **options: Any) -> Any:
        context = beside.context if beside else browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        watched.append(Watch(page, address))
        page.goto(f"{address}/{path}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [each.said for each in watched] == [[]] * len(watched)
    assert [each.elsewhere for each in watched] == [[]] * len(watched)


def state(page: Any) -> dict[str, list[str]]:
    """What the address holds."""
    return parse_qs(urlsplit(page.url).query, keep_blank_values=True)


def answer(page: Any) -> str:
    """The headline of the answer."""
    return str(page.locator("#answer .answer").first.inner_text())


def in_answer(page: Any, text: str) -> Any:
    """Where the answer says that."""
    return page.locator("#answer").get_by_text(text).first


def command(page: Any) -> str:
    """The command line that is shown."""
    return str(page.locator("#command").inner_text())


def test_the_main_flow(opened: Open) -> None:
    """Open, name a model and hardware, see what fits; take them along to the traffic, and see latency by policy."""
    page = opened("")
    page.get_by_label("Model", exact=True).fill("llama-3-70b")
    in_answer(page, "does not fit").wait_for()
    page.get_by_label("How many").fill("4")
    in_answer(page, "llama-3-70b fits on 4 x").wait_for()
    assert state(page) == {"model": ["llama-3-70b"], "count": ["4"]}
    page.get_by_role("link", name="Traffic").click()
    assert state(page) == {"model": ["llama-3-70b"], "count": ["4"]}
    page.goto(f"{page.url}&{QUICK}")
    settled(page)
    assert page.locator("figure").count() == 2
    assert "target" in page.locator("figure svg").first.text_content()
    assert "servewise simulate llama-3-70b" in command(page)
    assert "--workload traffic.toml" in command(page)


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_tidy(opened: Open, view: str) -> None:
    """Light, dark and narrow, printed too: nothing overlaps or overflows, axes have units, text can be read."""
    query, axes = VIEWS[view]
    page = opened(f"{view}?{query}")
    if view == "plan":
        page.get_by_role("button", name="Run").click()
    settled(page)
    tidy(page)
    shot(page, f"{view}-light")
    drawn = page.locator("figure svg").all_text_contents()
    for label, tick in axes:
        chart = next((text for text in drawn if label in text), None)
        assert chart, f"no chart has the axis {label}"
        assert re.search(tick, chart), f"no tick reads {tick} in the chart of {label}"
    page.emulate_media(color_scheme="dark")
    tidy(page)
    shot(page, f"{view}-dark")
    page.set_viewport_size({"width": 360, "height": 780})
    tidy(page)
    shot(page, f"{view}-narrow")
    page.set_viewport_size({"width": 700, "height": 990})
    page.emulate_media(color_scheme="light", media="print")
    assert not page.locator("form").is_visible()
    shot(page, f"{view}-print")


def test_a_bad_upload_is_told_and_mended(opened: Open, tmp_path: Path) -> None:
    """A file that is no model is one line beside the field; the page stays, and goes on with a good name."""
    bad = tmp_path / "config.json"
    bad.write_text("{not json")
    page = opened("fit")
    before = answer(page)
    page.locator("#model-file").set_input_files(bad)
    page.locator("#model-error:not(:empty)").wait_for()
    assert (
        "is not JSON" in page.locator("#model-error").inner_text()
        or "JSON" in page.locator("#model-error").inner_text()
    )
    assert page.locator("#model").get_attribute("aria-invalid") == "true"
    assert answer(page) == before
    told = page.locator("#model-error").inner_text()
    assert told.startswith("pasted.json: ")
    assert "JSON" in told
    shot(page, "bad-upload")
    page.locator("#model").fill("llama-3.2-1b")
    in_answer(page, "llama-3.2-1b fits on").wait_for()
    assert page.locator("#model-error").inner_text() == ""
    assert page.locator("#told").inner_text().startswith("llama-3.2-1b fits on")  # what a screen reader is told


def test_a_pasted_config_answers(opened: Open) -> None:
    """A config.json that was pasted is sized, and the command names a file that can be saved."""
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
        "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 16, "vocab_size": 128256,
        "torch_dtype": "bfloat16", "tie_word_embeddings": True, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
    }  # fmt: skip
    page = opened("fit")
    page.get_by_text("Paste a config.json").click()
    page.get_by_label("The text of the model's config.json").fill(json.dumps(config))
    page.get_by_role("button", name="Take it").click()
    in_answer(page, "my-llama fits on").wait_for()
    assert command(page).startswith("servewise size my-llama.json ")
    assert page.get_by_role("link", name="my-llama.json").is_visible()
    page.reload()
    assert answer(page).startswith("my-llama fits on")


def test_a_long_run_is_cancelled(opened: Open) -> None:
    """Progress is seen, Cancel ends the run at once and says so, and the next run works."""
    page = opened(f"traffic?{LONG}")
    page.locator("#running").wait_for()
    with page.expect_response(lambda reply: reply.request.method == "DELETE") as cancelled:
        page.get_by_role("button", name="Cancel").click()
    assert cancelled.value.json()["state"] == "cancelled"
    page.get_by_text("Cancelled.").wait_for()
    assert not page.locator("#running").is_visible()
    shot(page, "cancelled")
    page.goto(page.url.split("?")[0] + f"?{QUICK}")
    settled(page)


def test_a_newer_run_replaces_the_older(opened: Open) -> None:
    """Changing something while a run is under way asks anew; the older run's answer never comes."""
    page = opened(f"traffic?{LONG}")
    page.locator("#running").wait_for()
    page.locator("#requests").fill("30")
    settled(page)
    assert "--requests 30 " in command(page)


def test_two_tabs_do_not_disturb_each_other(opened: Open) -> None:
    """Two tabs of one browser: each keeps its own state, and cancelling one's run leaves the other's."""
    one = opened(f"traffic?{LONG}")
    two = opened("fit", beside=one)
    one.locator("#running").wait_for()
    two.locator("#context").fill("512")
    in_answer(two, "sequences of 512 tokens").wait_for()
    three = opened(f"traffic?{QUICK}", beside=one)
    settled(three)
    assert one.locator("#running").is_visible()
    one.get_by_role("button", name="Cancel").click()
    assert three.locator("#command").is_visible()
    assert state(two) == {"context": ["512"]}


def test_the_address_is_the_state(opened: Open) -> None:
    """Reloaded, or opened elsewhere, an address gives the same view; the back button goes back through them."""
    page = opened("fit")
    page.get_by_label("Accelerator", exact=True).fill("l4")
    in_answer(page, "L4").wait_for()
    page.get_by_label("KV cache", exact=True).select_option("fp8")
    page.wait_for_function("() => document.querySelector('#command')?.textContent.includes('--kv fp8')")
    seen = page.locator("#answer").inner_text()
    page.reload()
    assert page.locator("#answer").inner_text() == seen
    assert opened(page.url.split("/", 3)[3]).locator("#answer").inner_text() == seen
    page.go_back()
    page.wait_for_function("() => !document.querySelector('#command')?.textContent.includes('--kv')")
    assert page.get_by_label("Accelerator", exact=True).input_value() == "l4"
    assert page.get_by_label("KV cache", exact=True).input_value() == ""
    page.go_forward()
    page.wait_for_function("() => document.querySelector('#command')?.textContent.includes('--kv fp8')")


def test_by_keyboard_alone(opened: Open) -> None:
    """Skip link, fields, folded fields, sliders, buttons and links are all reached and used by keys, focus seen."""
    page = opened("speculation")
    keys = page.keyboard
    keys.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"

    def reach(selector: str) -> None:
        for _ in range(120):
            if page.evaluate("(to) => document.activeElement.matches(to)", selector):
                return
            keys.press("Tab")
        raise AssertionError(f"{selector} is not reached")

    reach("#model")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    keys.press("Control+A")
    keys.type("llama-3-8b")
    keys.press("Enter")
    page.wait_for_function("() => document.querySelector('#command')?.textContent.includes(' llama-3-8b ')")
    reach("summary")
    reach("#acceptance")
    keys.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('#command')?.textContent.includes('--acceptance 0.71')")
    reach("[data-png]")
    with page.expect_download() as saved:
        keys.press("Enter")
    assert Path(saved.value.path()).read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    reach("a[href*='answer.json']")
    with page.expect_download() as saved:
        keys.press("Enter")
    assert json.loads(Path(saved.value.path()).read_text())["schema"] == "servewise.speculate/1"


def test_a_picture_is_sharp_and_readable(opened: Open) -> None:
    """A chart's PNG has its SVG's shape, twice as many pixels or more, on white also in the dark."""
    page = opened("steptime", color_scheme="dark")
    with page.expect_download() as saved:
        page.locator("[data-png]").first.click()
    picture = Path(saved.value.path()).read_bytes()
    width, height = (int.from_bytes(picture[at : at + 4], "big") for at in (16, 20))
    assert width >= 600
    assert 0.4 < height / width < 1
    from matplotlib import image

    pixels = image.imread(saved.value.path(), format="png")
    assert pixels[0, 0, :3].min() == 1.0
    assert pixels[..., :3].min() < 0.3


def test_a_prompt_log_shows_where_prompts_break(opened: Open, tmp_path: Path) -> None:
    """A log whose prompts part at the first word, after a common beginning, shows the token at which they part."""
    lines = [
        {"arrival_s": second, "prompt_tokens": 64, "output_tokens": 8, "prompt": [1] * 32 + [second + 2] * 32}
        for second in range(20)
    ]
    log = tmp_path / "prompts.jsonl"
    log.write_text("\n".join(map(json.dumps, lines)))
    page = opened("prefix?log=mooncake-conv&block=16")  # its own blocks are fixed: that is an error at first
    page.locator("#log-file").set_input_files(log)
    settled(page)
    assert "can be reused" in answer(page)
    page.locator("summary", has_text="What breaks the shared prefix").click()
    assert page.get_by_role("cell", name="32", exact=True).first.is_visible()
    assert "servewise prefix prompts.jsonl" in command(page)
