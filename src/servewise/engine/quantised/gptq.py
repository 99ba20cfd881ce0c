"""Error-compensating rounding: GPTQ. Legend: O outputs, I inputs, B inputs of a block.

Source: Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers", 2022,
algorithm 1: inputs are rounded one after the other, and the error of each is made up for by those not yet rounded, as
far as the second moments of the layer's inputs say that they can.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from servewise.engine.quantised.grid import Grid, Steps, decode, encode, in_groups, steps_of
from servewise.engine.quantised.matrix import QuantisedMatrix, check_finite, round_to_nearest
from servewise.errors import InputError

BLOCK = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Gptq:
    """``damping``: share of the Hessian's mean diagonal that is added to it (the paper's 1%).

    ``act_order``: inputs with the largest second moment first. Groups keep their places then, with steps fitted before
    anything is rounded ("static groups"), so that the stored layout is the plain one.
    """

    damping: float = 0.01
    act_order: bool = False

    def __post_init__(self) -> None:
        """Refuses a damping that is none."""
        if not 0 < self.damping < 1:
            raise InputError(f"a damping of {self.damping}", where="damping", hint="above 0 and below 1, e.g. 0.01")


def output_error(difference_OI: Tensor, moment_II: Tensor) -> Tensor:
    """(O,) mean squared error of each output when the weight is off by ``difference_OI``: diag(D E[x x^T] D^T)."""
    return ((difference_OI @ moment_II) * difference_OI).sum(1)


def compensated(weight_OI: Tensor, moment_II: Tensor, grid: Grid, how: Gptq) -> QuantisedMatrix:
    """The matrix by GPTQ for inputs with second moments ``moment_II`` = E[x x^T].

    An output that plain rounding serves better (it happens: the method is greedy) keeps plain rounding, so that the
    error on the calibration text is never above it.
    """
    check_finite(weight_OI)
    if moment_II.shape != (weight_OI.shape[1],) * 2 or not torch.isfinite(moment_II).all():
        raise InputError(f"second moments of shape {tuple(moment_II.shape)} for a weight of {tuple(weight_OI.shape)}")
    moment_II = moment_II.to(weight_OI.dtype)
    plain, greedy = round_to_nearest(weight_OI, grid), _greedy(weight_OI, moment_II, grid, how)
    errors = [output_error(each.dense() - weight_OI, moment_II) for each in (plain, greedy)]
    return _better(plain, greedy, errors[1] < errors[0])


def _better(plain: QuantisedMatrix, greedy: QuantisedMatrix, choose_O: Tensor) -> QuantisedMatrix:
    steps = Steps(
        torch.where(choose_O[:, None, None], greedy.steps.scale, plain.steps.scale),
        torch.where(choose_O[:, None, None], greedy.steps.offset, plain.steps.offset),
    )
    return QuantisedMatrix(plain.grid, torch.where(choose_O[:, None], greedy.codes_OI, plain.codes_OI), steps)


def _greedy(weight_OI: Tensor, moment_II: Tensor, grid: Grid, how: Gptq) -> QuantisedMatrix:
    inputs = weight_OI.shape[1]
    order_I = moment_II.diagonal().argsort(descending=True) if how.act_order else torch.arange(inputs)
    order_I = order_I.to(weight_OI.device)
    factor_II = inverse_factor(moment_II[order_I][:, order_I], how.damping)
    steps = steps_of(in_groups(weight_OI, grid.group), grid)
    rounding = _Rounding(weight_OI.T[order_I], steps, order_I.tolist(), grid)
    for start in range(0, inputs, BLOCK):
        end = min(start + BLOCK, inputs)
        errors_BO = rounding.block(start, end, factor_II, refit=not how.act_order)
        rounding.left_IO[end:] -= factor_II[start:end, end:].T @ errors_BO
    return QuantisedMatrix(grid, rounding.codes_IO.T.contiguous(), rounding.steps)


def inverse_factor(moment_II: Tensor, damping: float) -> Tensor:
    """Upper triangular U with U^T U = (H + damping x mean diag(H))^-1.

    With P the reversal, H = R R^T for R = P chol(P H P) P, so U = R^-1: one factorisation, one triangular inverse.
    """
    mean = moment_II.diagonal().mean().clamp(min=torch.finfo(moment_II.dtype).tiny)
    identity = torch.eye(len(moment_II), dtype=moment_II.dtype, device=moment_II.device)
    damped = moment_II / mean + damping * identity
    factor, failed = torch.linalg.cholesky_ex(damped.flip(0, 1))
    if failed.item():
        raise InputError("second moments that no calibration text gives: not positive", hint="more damping or text")
    upper: Tensor = torch.linalg.solve_triangular(factor.flip(0, 1), identity, upper=True)
    return upper / mean.sqrt()


class _Rounding:
    """The weights not yet rounded, an input a row, in the order of rounding; and what has been decided."""

    def __init__(self, left_IO: Tensor, steps: Steps, order: list[int], grid: Grid) -> None:
        self.left_IO, self.order, self.grid = left_IO, order, grid
        self.steps = Steps(steps.scale.clone(), steps.offset.clone())
        self.codes_IO = torch.empty(left_IO.shape, dtype=torch.int16, device=left_IO.device)
        self.group = min(grid.group or len(order), len(order))

    def block(self, start: int, end: int, factor_II: Tensor, *, refit: bool) -> Tensor:
        """Round the inputs from ``start`` to ``end``; their errors, each over the factor's diagonal."""
        errors_BO = torch.empty_like(self.left_IO[start:end])
        for place in range(start, end):
            if refit and place % self.group == 0:
                self._fit(place, start, end, errors_BO, factor_II)
            errors_BO[place - start] = error_O = self._round(place, factor_II[place, place])
            self.left_IO[place:end].addr_(factor_II[place, place:end], error_O, alpha=-1)
        return errors_BO

    def _fit(self, place: int, start: int, end: int, errors_BO: Tensor, factor_II: Tensor) -> None:
        """Steps of the group that begins at ``place``, from its weights as they are by now."""
        last = min(place + self.group, len(self.order))
        left_NO = self.left_IO[place:last]
        if last > end and place > start:
            behind = factor_II[start:place, end:last].T @ errors_BO[: place - start]
            left_NO = torch.cat((left_NO[: end - place], left_NO[end - place :] - behind))
        fitted = steps_of(left_NO.T[:, None], self.grid)
        self.steps.scale[:, place // self.group] = fitted.scale[:, 0]
        self.steps.offset[:, place // self.group] = fitted.offset[:, 0]

    def _round(self, place: int, diagonal: Tensor) -> Tensor:
        index = self.order[place]
        group = index // self.group
        steps = Steps(self.steps.scale[:, group, 0], self.steps.offset[:, group, 0])
        weight_O = self.left_IO[place]
        codes_O = encode(weight_O, steps, self.grid)
        self.codes_IO[index] = codes_O.to(torch.int16)
        return (weight_O - decode(codes_O, steps, self.grid)) / diagonal
