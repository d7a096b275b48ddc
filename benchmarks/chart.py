"""A picture of results: for every case the ratio to each peer, and the share of the ceiling."""

from __future__ import annotations

from collections.abc import Sequence
import pathlib

from bars import read
import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from report import Result, columns, is_busy, ratio, share

MARKERS = "osD^vP*Xph<>"
INCHES_A_CASE = 0.24


class NothingToDraw(Exception):
    """The results have no times."""


def _label(result: Result) -> str:
    own = result["rivals"].get(result["subject"])
    return result["name"] + (" *" if is_busy(result) else "") + (" ~" if own and own["disturbed"] else "")


def _ratios(axes: Axes, results: Sequence[Result]) -> None:
    """A dot for each peer; right of the line the subject is faster. What is disturbed or disagrees is hollow."""
    peers = list(dict.fromkeys(p for r in results for p in columns(r)))
    colors = matplotlib.colormaps["tab20"].colors
    axes.axvline(1, color="black", linewidth=1)
    for i, peer in enumerate(peers):
        sound, doubted = ([], []), ([], [])
        for at, result in enumerate(results):
            if peer != result["subject"] and (value := ratio(result, peer, "median")) is not None:
                is_sound = not (result["rivals"][peer]["disturbed"] or result["disagreements"].get(peer))
                x, y = sound if is_sound else doubted
                x.append(value)
                y.append(at)
        marker, color = MARKERS[i % len(MARKERS)], colors[i % len(colors)]
        axes.plot(*doubted, marker, markerfacecolor="none", color=color)
        axes.plot(*sound, marker, color=color, label=peer)
    axes.set_xscale("log")
    axes.set_xlabel("their time / our time (right of 1: we are faster)")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.grid(axis="both", linewidth=0.3)
    axes.set_yticks(range(len(results)), [_label(r) for r in results])
    axes.set_ylim(len(results) - 0.5, -0.5)
    if peers:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=6, frameon=False, fontsize="small")


def _shares(axes: Axes, results: Sequence[Result]) -> None:
    shares = [100 * (share(r) or 0) for r in results]
    axes.barh(range(len(results)), shares, color="tab:gray")
    for at, value in enumerate(shares):
        axes.text(value + 1, at, f"{value:.0f}" if value else "-", va="center", fontsize="small")
    axes.set_xlim(0, 110)
    axes.set_xlabel("share of the ceiling, %")


def draw(paths: Sequence[pathlib.Path]) -> pathlib.Path:
    """A PNG beside the first file of results."""
    results = [r for r in read(paths) if r["rivals"]]
    if not results:
        raise NothingToDraw(f"--chart must name results with times, got none in {', '.join(map(str, paths))}")
    height = 1.6 + INCHES_A_CASE * len(results)
    # A figure of its own, not pyplot's: nothing looks for a screen.
    figure = Figure(figsize=(15, height), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1))
    _ratios(left, results)
    _shares(right, results)
    path = paths[0].with_suffix(".png")
    figure.savefig(path, dpi=110)
    return path
