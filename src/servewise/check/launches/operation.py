"""Operation: who can reach the server, secrets in the file, probes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from servewise.check.engines.settings import Settings
from servewise.check.finding import Finding, Place, found

KEYS = ("VLLM_API_KEY", "LLAMA_API_KEY", "SGLANG_API_KEY")
SECRET_NAMES = re.compile(r"(?:TOKEN|API_KEY|SECRET|PASSWORD)$")
HUB_TOKEN = re.compile(r"\bhf_[A-Za-z0-9]{20,}\b")
LITERAL = re.compile(r"[A-Za-z0-9_\-.]{16,}")
EXAMPLES = ("example", "your", "replace", "token-abc123", "xxx", "changeme", "secret_key")


def operation(settings: Settings) -> Iterator[Finding]:
    """The mistakes of operation in one launch."""
    yield from _exposed(settings)
    key = settings.given("key")
    if key is not None and key.name != "--api-key-file" and _is_secret(str(key.value or "")):
        yield found("secret-in-file", key.at, f"{key.written} is given in clear.")
    for name, value in settings.launch.environment.items():
        if SECRET_NAMES.search(name) and _is_secret(value):
            yield found("secret-in-file", settings.launch.place.called(name), f"{name} is given in clear.")
    site = settings.launch.site
    if site.hides_variables and settings.launch.engine == "vllm":
        yield found("service-named-vllm", settings.launch.place)
    if site.liveness_only:
        yield found("killed-while-loading", Place(site.place.line, site.place.column, "livenessProbe"))


def tokens_in(text: str) -> Iterator[Finding]:
    """Hub tokens anywhere in a file."""
    for number, line in enumerate(text.splitlines(), start=1):
        for match in HUB_TOKEN.finditer(line):
            if len(set(match.group()[3:])) > 8:
                place = Place(number, match.start() + 1, "hf_...")
                yield found("secret-in-file", place, "A Hugging Face token stands in clear.")


def _exposed(settings: Settings) -> Iterator[Finding]:
    launch, host = settings.launch, settings.given("host")
    keyed = settings.given("key") is not None or any(name in launch.environment for name in KEYS)
    if keyed:
        return
    everywhere = host is not None and settings.words("host").strip("\"'") in ("0.0.0.0", "::", "[::]", "*")
    if launch.site.public:
        why = f"{launch.site.public[:1].upper()}{launch.site.public[1:]} makes it reachable, and it asks for no key."
        place = host.at if host is not None else launch.place
        yield found("exposed-without-key", place, why, severity="warning")
    elif everywhere and host is not None and launch.site.kind in ("command", "config"):
        yield found("exposed-without-key", host.at)


def _is_secret(value: str) -> bool:
    plain = LITERAL.fullmatch(value) is not None and not any(word in value.lower() for word in EXAMPLES)
    return plain and len(set(value)) > 6
