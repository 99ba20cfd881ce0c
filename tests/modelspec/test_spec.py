"""What a spec says of itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from servewise.modelspec.load import load_model, model_names
from servewise.modelspec.spec import AttentionKind


@given(st.sampled_from(model_names()))
def test_active_is_within_total(name: str) -> None:
    """A token uses at most all parameters, and all of them where there are no experts."""
    model = load_model(name)
    mixed = any(group.feed_forward.experts for group in model.layers)

    assert (model.active_parameters < model.parameters) == mixed
    assert model.active_parameters <= model.parameters


@given(st.sampled_from(model_names()))
def test_windows_belong_to_windowed_layers(name: str) -> None:
    """A layer has a window when, and only when, its kind is sliding or chunked."""
    for _, each in load_model(name).attentions():
        assert bool(each.window_tokens) == (each.kind in (AttentionKind.SLIDING, AttentionKind.CHUNKED))
        assert each.replicated_parameters <= each.parameters
