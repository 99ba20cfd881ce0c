"""The calibration's file: written and read back, refused with one clear line, and used with caveats."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.steptime.known import LLAMA_2_7B, LLAMA_31_8B, accelerator, deployed

from servewise.errors import InputError
from servewise.steptime.api import estimator_for
from servewise.steptime.calibration import Assumed, Calibration, Fitted, setting_of
from servewise.steptime.calibration_file import calibration_toml, load_calibration
from servewise.steptime.coefficients import ValidRange
from servewise.steptime.server_coefficients import BOUNDS, COEFFICIENTS
from servewise.steptime.server_roofline import ServerRoofline
from servewise.steptime.shape import decode_shape

WHERE = deployed(LLAMA_31_8B, accelerator())
KNOWN = Calibration(
    setting=setting_of(WHERE),
    fitted={
        "step_s": Fitted(value=0.002, ci95=(0.0015, 0.0025)),
        "sequence_s": Fitted(value=0.0, ci95=(0.0, 1e-5)),
        "weight_efficiency": Fitted(value=0.8, ci95=(0.7, 0.9)),
        "flop_efficiency": Fitted(value=0.5, ci95=(0.4, 0.6)),
        "kv_efficiency": Fitted(value=0.75, ci95=(0.5, 1.0)),
        "attention_efficiency": Fitted(value=0.25, ci95=(0.2, 0.3)),
        "request_s": Fitted(value=0.01, ci95=(0.008, 0.012)),
    },
    assumed={"ramp_tokens": Assumed(value=0.0, why='too few "rows"\n\x7f', measure="measure at 16 streams")},
    policy="continuous, 8 slots",
    source="step records",
    runs=("runs/one", 'ru"n\\2'),
    measured="2026-11-29",
    version="0.1.0",
    errors={"train_median": 0.01, "heldout_p90": 0.05},
    spread=0.03,
    valid_range=ValidRange(decode_sequences=(1, 8), context_tokens=(64, 512), prefill_tokens=(16, 900), tensor=(1, 1)),
)


def written(folder: Path, text: str) -> str:
    """The path of a file with that content."""
    path = folder / "server.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_comes_back(tmp_path: Path) -> None:
    """What is written is read back equal: values, intervals, assumptions, errors and range."""
    assert load_calibration(written(tmp_path, calibration_toml(KNOWN))) == KNOWN


def test_is_an_estimator(tmp_path: Path) -> None:
    """A .toml file named as the estimator times steps by its coefficients, and says what it assumed."""
    found = estimator_for(WHERE, written(tmp_path, calibration_toml(KNOWN)))

    assert isinstance(found, ServerRoofline)
    assert found.name == "calibrated (server.toml)"
    assert found.request_s == 0.01
    assert found.seconds(decode_shape(4, 100)) == ServerRoofline(WHERE, KNOWN.coefficients).seconds(
        decode_shape(4, 100)
    )
    assert [(each.code, each.cure) for each in found.caveats] == [
        ("coefficient-not-identified", "measure at 16 streams")
    ]


def test_use_elsewhere_names_every_difference() -> None:
    """Another model on another accelerator at TP2 is answered with one caveat for each of the three."""
    asked = deployed(LLAMA_2_7B, accelerator("h100-sxm"), tensor=2)
    told = [each.message for each in KNOWN.estimator(asked).caveats if each.code == "calibrated-elsewhere"]

    assert len(told) == 3
    assert "llama-3.1-8b" in told[0]
    assert "llama-2-7b" in told[0]
    assert "a100-80gb" in told[1]
    assert "TP1" in told[2]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("servewise.calibration/1", "servewise.calibration/9", "schema"),
        ("weight_efficiency", "weight_eficiency", "did you mean weight_efficiency"),
        ("value = 0.8", "value = 1.8", "out of range"),
        ("value = 0.8", "value = true", "must be a number"),
        ("value = 0.8", "value = nan", "out of range"),
        ("ci95 = [0.7, 0.9]", "ci95 = [0.9, 0.95]", "around the value"),
        ("ci95 = [0.7, 0.9]", "ci95 = [0.7]", "around the value"),
        ("\n[assumed]", "ramp_tokens = { value = 0.0, ci95 = [0.0, 1.0] }\n[assumed]", "ramp_tokens is both"),
        ("kv_efficiency = { value = 0.75, ci95 = [0.5, 1.0] }\n", "", "lacks kv_efficiency"),
        ("decode_sequences = [1, 8]", "decode_sequences = [8, 1]", "lowest and the highest"),
        ('model = "llama-3.1-8b"', "model = 3", "must be text"),
        ("[errors]", "[errorz]", "unknown key"),
        ("spread = 0.03", "spread = -1.0", "out of range"),
    ],
)
def test_mistakes_are_one_clear_line(tmp_path: Path, old: str, new: str, told: str) -> None:
    """A file that is no calibration is refused with what is wrong and where."""
    text = calibration_toml(KNOWN)
    assert old in text
    with pytest.raises(InputError, match=r"server\.toml") as refused:
        load_calibration(written(tmp_path, text.replace(old, new)))

    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


@given(st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_mangled_files_never_break(tmp_path: Path, data: st.DataObject) -> None:
    """A file with bytes cut out, put in or swapped is read or refused, never another error."""
    raw = bytearray(calibration_toml(KNOWN).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    path = tmp_path / "server.toml"
    path.write_bytes(raw)
    with contextlib.suppress(InputError):
        load_calibration(path)


@given(st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_coefficients_come_back(tmp_path: Path, data: st.DataObject) -> None:
    """Any values within the bounds and any names survive the file, to six digits."""
    values = {name: data.draw(st.floats(*BOUNDS[name])) for name in COEFFICIENTS}
    fitted = {name: Fitted(value=value, ci95=BOUNDS[name]) for name, value in values.items()}
    setting = replace(KNOWN.setting, model=data.draw(st.text(st.characters(codec="utf-8"))))
    known = replace(KNOWN, fitted=fitted, assumed={}, setting=setting)
    back = load_calibration(written(tmp_path, calibration_toml(known)))

    assert back.setting == setting
    assert back.coefficients.to_dict() == pytest.approx(values, rel=1e-5)
