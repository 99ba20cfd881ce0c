"""A calibration: the coefficients of one server as fitted, with their doubt, and for what they hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from servewise.caveats import Caveat
from servewise.deployment.deployment import Deployment
from servewise.steptime.coefficients import ValidRange
from servewise.steptime.server_coefficients import ServerCoefficients
from servewise.steptime.server_roofline import ServerRoofline

DIFFERS = "calibrated-elsewhere"
ASSUMED = "coefficient-not-identified"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A coefficient that the data tell: its value and its 95% interval."""

    value: float
    ci95: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """A coefficient that the data do not tell: the value that is used, why none was fitted, what would tell it."""

    value: float
    why: str
    measure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What was measured: a calibration holds for the same alone."""

    model: str
    accelerator: str
    engine: str
    precision: str
    parallelism: str

    def differences(self, other: Setting) -> list[str]:
        """What differs from ``other``, in words."""
        names = ("model", "accelerator", "engine", "precision", "parallelism")
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in names)
        return [f"{name} {mine} where {its} is asked about" for name, mine, its in pairs if mine != its]


def setting_of(deployment: Deployment) -> Setting:
    """The setting of ``deployment``. Engines differ by family, not by version: versions change the coefficients."""
    formats = f"{deployment.stored_weights} weights, {deployment.kv} KV cache, {deployment.activations} activations"
    return Setting(
        model=deployment.model.name,
        accelerator=deployment.accelerator.name,
        engine=deployment.engine,
        precision=formats,
        parallelism=str(deployment.parallelism),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Every coefficient is either in ``fitted`` or in ``assumed``.

    ``policy`` says how the server batched, ``source`` what was fitted (``step records`` or ``request records``),
    ``runs`` which runs, ``measured`` when (a date). ``errors``: ``train_*`` and ``heldout_*`` medians and 90th
    percentiles of |predicted / measured - 1|. ``spread``: standard deviation of the logarithm of that ratio on held-out
    data, by which intervals of predictions widen.
    """

    setting: Setting
    fitted: Mapping[str, Fitted]
    assumed: Mapping[str, Assumed] = field(default_factory=dict)
    policy: str = ""
    source: str = ""
    runs: tuple[str, ...] = ()
    measured: str = ""
    version: str = ""
    errors: Mapping[str, float] = field(default_factory=dict)
    spread: float = 0.0
    valid_range: ValidRange | None = None

    @property
    def coefficients(self) -> ServerCoefficients:
        """The values, fitted and assumed."""
        values = {name: each.value for name, each in self.fitted.items()}
        return ServerCoefficients(**values, **{name: each.value for name, each in self.assumed.items()})

    def estimator(self, deployment: Deployment, title: str = "calibration") -> ServerRoofline:
        """The estimator of ``deployment``; caveats name each difference from what was measured, and each assumption."""
        return ServerRoofline(
            deployment,
            self.coefficients,
            name=f"calibrated ({title})",
            caveats=self._differing(setting_of(deployment)) + self._assuming(),
            valid_range=self.valid_range,
            spread=self.spread,
        )

    def _differing(self, asked: Setting) -> tuple[Caveat, ...]:
        cure = "calibrate on a run of what is asked about"
        return tuple(
            Caveat(DIFFERS, f"measured on {difference}: the efficiencies are carried over", cure)
            for difference in self.setting.differences(asked)
        )

    def _assuming(self) -> tuple[Caveat, ...]:
        return tuple(
            Caveat(ASSUMED, f"{name} is taken as {each.value:.3g}: {each.why}", each.measure)
            for name, each in self.assumed.items()
        )
