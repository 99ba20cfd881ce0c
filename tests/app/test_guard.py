"""What a server on loopback must refuse, and the headers that every reply carries."""

from __future__ import annotations

import pytest
from tests.app.serving import OWN, page


def test_another_hosts_name_is_refused() -> None:
    """A name that was pointed at this machine (DNS rebinding) gets nothing."""
    with page() as client:
        for host in ("evil.example", "evil.example:8010", "127.0.0.1", "127.0.0.1:9"):
            assert client.get("/fit", headers={"host": host}).status_code == 403


def test_another_sites_post_is_refused() -> None:
    """Only the page itself may start a run, cancel one, or upload a file."""
    with page() as client:
        for origin in ("http://evil.example", "null", "http://127.0.0.1:9"):
            headers = {"origin": origin}
            assert client.post("/traffic/job", headers=headers).status_code == 403
            assert client.post("/uploads?name=a.json", content=b"{}", headers=headers).status_code == 403
            assert client.delete("/jobs/0", headers=headers).status_code == 403


def test_a_post_without_origin_needs_the_browsers_word() -> None:
    """Where no origin is sent, the browser must say that the page asks."""
    with page() as client:
        del client.headers["origin"]
        assert client.post("/uploads?name=a.json", content=b"{}").status_code == 403
        mine = client.post("/uploads?name=a.json", content=b"{}", headers={"sec-fetch-site": "same-origin"})
        assert mine.status_code == 200


@pytest.mark.parametrize("path", ["/fit", "/fit/answer", "/static/page.js", "/nowhere", "/uploads/x/y"])
def test_every_reply_forbids_foreign_content(path: str) -> None:
    """No reply, an error's neither, lets a browser load from elsewhere, run inline script or be framed."""
    with page() as client:
        policy = client.get(path).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy


def test_the_page_names_no_other_host() -> None:
    """Neither the page, its style nor its script holds an address of another host."""
    with page() as client:
        for path in ("/fit", "/static/page.css", "/static/page.js"):
            text = client.get(path).text.replace(OWN, "")
            for known in ('xmlns="http://www.w3.org/2000/svg"', 'xmlns:xlink="http://www.w3.org/1999/xlink"'):
                text = text.replace(known, "")
            assert "http://" not in text
            assert "https://" not in text
            assert "<script>" not in text


def test_what_is_uploaded_is_never_shown_as_a_page() -> None:
    """An uploaded file comes back as a download, whatever it holds, so it cannot run in the page's name."""
    with page() as client:
        found = client.post("/uploads?name=a.json", content=b"<script>alert(1)</script>").json()
        back = client.get("/uploads/" + found["reference"].removeprefix("upload:"))
    assert back.headers["content-disposition"].startswith("attachment")
    assert back.headers["x-content-type-options"] == "nosniff"
