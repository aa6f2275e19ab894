"""Periodicity: the strongest cycle of a series, and its false alarm probability.

A Lomb-Scargle periodogram with a floating mean (Zechmeister and Kürster 2009), so gaps are allowed,
of the detrended series. At each frequency it is compared with the noise *there*: slow noise has
much power at long periods and produces "cycles" of two or three swings. The noise spectrum is a sum
of two AR(1) spectra, fitted by Whittle's likelihood (1953) to the periodogram without the candidate
and its neighbourhood. Disks that alternate between two states at random have such a spectrum (a
Lorentzian), with fast AR(1) noise on top. With R the candidate's power over the noise's, the false
alarm probability at one frequency is ``p = (1 + R / k) ** -k``, nearly ``e^-R``. Here k is the
number of frequencies up to four times as high that determine the noise there, less the fitted
parameters (at long periods k is small). For the largest of all frequencies up to f it is, after
Baluev (2008, eq. 5 and 6)::

    1 - (1 - p) exp(-W p sqrt(R)),   W = f sqrt(4 pi var(seconds))

The usual null for correlated noise, shuffled blocks, fails here: blocks shorter than the period
also break slow noise, which then passes for a cycle, and longer blocks keep the cycle.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tonnage.base.stats.samples import FloatArray, Floats, checked_series

MIN_CYCLES = 3.0  # A cycle repeats at least this often within the series
LEAST = 32  # Minimum number of samples: fewer do not separate noise from cycles
MOST = 2_048
"""Longer series are averaged into this many bins of time; faster cycles are not detected."""
FINER = 2  # Oversampling: frequencies examined for each that the series resolves
SLOW = (0.6, 0.8, 0.9, 0.95, 0.97, 0.985, 0.993, 0.998)
FAST = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75)
SLOW_SHARES = (0.0, 0.02, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 1.0)
"""Lag-1 autocorrelations of the two noises, and the slower one's share of the power."""


FITTED = 4  # Fitted parameters: two autocorrelations, a share, a scale
NEIGHBOURS = 4
"""The noise at a frequency follows from all lower ones and from those up to 4 times as high."""


@dataclass(frozen=True)
class Cycle:
    """The strongest cycle of a series: ``A cos(2 pi (t - peak) / period)``."""

    period_seconds: float
    amplitude_value: float  # Half the distance from trough to crest, in the values' unit
    amplitude_share: float  # The amplitude over the absolute median; infinite where that is zero
    peak_seconds: float  # The first crest at or after the start of the series
    explained_share: float  # Of the detrended variance
    false_alarm: float
    """Probability that noise with the fitted spectrum shows as strong a cycle, at any period."""


def strongest_cycle(seconds: Floats, values: Floats, *, least_cycles: float = MIN_CYCLES) -> Cycle:
    """The cycle that stands out most from the noise, with its false alarm probability.

    Shapes ``(n,)``, at least 32; gaps are allowed, but the noise spectrum assumes even spacing.
    The longest period is the length of the series over ``least_cycles``.
    """
    moments, array = checked_series(seconds, values, least=LEAST)
    if least_cycles < 1:
        raise ValueError("least_cycles must be at least 1")
    began, middle = float(moments[0]), float(np.median(array))
    moments, array = _binned(moments - began, array)
    level = _without_line(moments, array)
    total = float(np.dot(level, level))
    step = float(np.median(np.diff(moments)))
    span = float(moments[-1]) + step
    if total <= 1e-20 * max(float(np.dot(array, array)), 1e-300):
        return Cycle(span / least_cycles, 0.0, 0.0, began, 0.0, 1.0)

    frequencies = np.arange(1, math.ceil(FINER * span / (2 * step))) / (FINER * span)
    searched = frequencies >= least_cycles / span * (1 - 1e-9)
    basis = _basis(tuple(moments.tolist()), tuple(frequencies.tolist()))
    powers = _powers(basis, level)
    # Only the series' own frequencies: those between them are not independent.
    own = np.arange(frequencies.size) % FINER == FINER - 1
    # Detrending removes much of the slowest.
    own[: 2 * FINER - 1] = False
    noise = _noise(frequencies * step, powers, own)
    # A strong cycle at a long period can pass for slow noise in the first fit, so two are tried.
    standing_out, strongest = (
        float(frequencies[searched][np.argmax(of[searched])]) for of in (powers / noise, powers)
    )
    cycles = []
    for candidate in {standing_out: None, strongest: None}:
        frequency = _refined(moments, level, candidate, 1 / (FINER * span), least_cycles / span)
        cosine, sine, fitted = _sinusoid(moments, level, frequency)
        explained = float(np.dot(fitted, fitted))
        apart = own & (np.abs(frequencies - frequency) > 1.5 / span)
        noise = _noise(frequencies * step, _powers(basis, level - fitted), apart)
        ratio = explained / 2 / float(np.interp(frequency, frequencies, noise))
        known = max(FITTED + 2, int((apart & (frequencies <= NEIGHBOURS * frequency)).sum()))
        amplitude = math.hypot(cosine, sine)
        peak = math.atan2(sine, cosine) / (2 * math.pi * frequency) % (1 / frequency)
        cycles.append(
            Cycle(
                period_seconds=1 / frequency,
                amplitude_value=amplitude,
                amplitude_share=amplitude / abs(middle) if middle else math.inf,
                peak_seconds=began + peak,
                explained_share=min(1.0, explained / total),
                false_alarm=_false_alarm(ratio, known, float(frequencies[-1]), moments),
            )
        )
    return min(cycles, key=lambda cycle: cycle.false_alarm)


def without_cycle(seconds: Floats, values: Floats, cycle: Cycle) -> FloatArray:
    """The values without the cycle, shape ``(n,)``; their level stays."""
    moments, array = checked_series(seconds, values)
    turns = (moments - cycle.peak_seconds) / cycle.period_seconds
    left: FloatArray = array - cycle.amplitude_value * np.cos(2 * np.pi * turns)
    return left


def periodogram(seconds: Floats, values: Floats, frequencies: Floats) -> FloatArray:
    """Half the sum of squares that a sinusoid of each frequency, and a mean, explain.

    White noise of variance v has v on average at each frequency, with an exponential distribution.
    ``frequencies``, shape ``(m,)``, are in cycles a second; the result, shape ``(m,)``, is in the
    values' unit squared.
    """
    moments, array = checked_series(seconds, values, least=3)
    basis = _basis(tuple(moments.tolist()), tuple(np.asarray(frequencies).tolist()))
    return _powers(basis, array - array.mean())


@lru_cache(maxsize=2)
def _basis(
    moments: tuple[float, ...], frequencies: tuple[float, ...]
) -> tuple[FloatArray, FloatArray]:
    """Two vectors for each frequency, orthonormal and orthogonal to a mean; shape ``(m, n)`` each.

    Cached, since instances measured together share their moments.
    """
    angles = 2 * np.pi * np.outer(frequencies, moments)
    first = np.cos(angles)
    second = np.sin(angles)
    for each in (first, second):
        each -= each.mean(axis=1, keepdims=True)
    first /= _lengths(first)
    second -= np.einsum("ij,ij->i", first, second)[:, None] * first
    second /= _lengths(second)
    return first, second


def _lengths(rows: FloatArray) -> FloatArray:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    # At the highest frequency of evenly spaced samples one of the two vanishes.
    safe: FloatArray = np.where(lengths > 1e-6, lengths, np.inf)
    return safe


def _powers(basis: tuple[FloatArray, FloatArray], level: FloatArray) -> FloatArray:
    first, second = basis
    powers: FloatArray = ((first @ level) ** 2 + (second @ level) ** 2) / 2
    return powers


def _noise(turns: FloatArray, powers: FloatArray, used: npt.NDArray[np.bool_]) -> FloatArray:
    """The noise's power at each frequency, ``turns`` per sample, fitted to those ``used``."""
    shapes = _shapes(tuple(turns.tolist()))
    fitted = shapes[:, used]
    scales = (powers[used] / fitted).mean(axis=1)
    scores = np.log(np.maximum(scales, 1e-300)) + np.log(fitted).mean(axis=1)
    best = int(np.argmin(scores))
    noise: FloatArray = np.maximum(scales[best], 1e-300) * shapes[best]
    return noise


@lru_cache(maxsize=4)
def _shapes(turns: tuple[float, ...]) -> FloatArray:
    """Spectra of all pairs of AR(1) noises, shape ``(pairs, m)``."""
    angles = 2 * np.pi * np.asarray(turns)

    def spectrum(r: float) -> FloatArray:
        shape: FloatArray = (1 - r * r) / (1 - 2 * r * np.cos(angles) + r * r)
        return shape

    return np.asarray(
        [
            share * spectrum(slow) + (1 - share) * spectrum(fast)
            for slow in SLOW
            for fast in FAST
            for share in SLOW_SHARES
            if fast < slow
        ]
    )


def _sinusoid(
    moments: FloatArray, level: FloatArray, frequency: float
) -> tuple[float, float, FloatArray]:
    """The cosine's and the sine's amplitudes, and the fitted values."""
    angles = 2 * np.pi * frequency * moments
    columns = np.stack([np.cos(angles), np.sin(angles), np.ones_like(moments)], axis=1)
    (cosine, sine, _), *_ = np.linalg.lstsq(columns, level, rcond=None)
    fitted = columns[:, :2] @ np.asarray([cosine, sine])
    return float(cosine), float(sine), fitted - fitted.mean()


def _refined(
    moments: FloatArray, level: FloatArray, candidate: float, step: float, least: float
) -> float:
    """The frequency near ``candidate`` that explains most, to a hundredth of the resolution."""
    found = candidate
    for finer in (step / 4, step / 40):
        near = found + finer * np.arange(-5, 6)
        near = near[near >= least * (1 - 1e-9)]
        fits = [_sinusoid(moments, level, float(each))[2] for each in near]
        found = float(near[int(np.argmax([np.dot(fit, level) for fit in fits]))])
    return found


def _false_alarm(ratio: float, known: int, highest: float, moments: FloatArray) -> float:
    width = highest * math.sqrt(4 * math.pi * float(np.var(moments)))
    # The fit leaves out the largest of ``known`` values, so it underestimates noise by this share.
    ratio *= 1 - math.log(known) / known
    alone = (1 + ratio / (known - FITTED)) ** (FITTED - known)
    # In logarithms, so that small probabilities keep their digits.
    log_none = math.log1p(-alone) - width * math.sqrt(ratio) * alone if alone < 1 else -math.inf
    return -math.expm1(log_none)


def _without_line(moments: FloatArray, array: FloatArray) -> FloatArray:
    away, level = moments - moments.mean(), array - array.mean()
    left: FloatArray = level - away * (np.dot(away, level) / np.dot(away, away))
    return left


def _binned(moments: FloatArray, array: FloatArray) -> tuple[FloatArray, FloatArray]:
    if array.size <= MOST:
        return moments, array
    places = np.minimum((moments / moments[-1] * MOST).astype(np.int64), MOST - 1)
    counts = np.bincount(places, minlength=MOST)
    held = counts > 0
    return (
        np.bincount(places, moments, MOST)[held] / counts[held],
        np.bincount(places, array, MOST)[held] / counts[held],
    )
