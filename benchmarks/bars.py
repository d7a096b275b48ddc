"""What the CPU kernels must reach: bars as data, and results held against them.

python benchmarks/run.py --bars                     a run, then its table
python benchmarks/run.py --bars FILE.json ...       the table of results that were written before; later files win
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
import fnmatch
import json
import pathlib

from cases import CASES
from report import NAME, Result, geometric_mean, is_busy, ratio, share

TORCH_LOOPS = ("torch-loop", "torch-script", "torch-compile")


@dataclass(frozen=True)
class Bar:
    """A bound for one figure of every case that `cases` names."""

    what: str
    cases: tuple[str, ...]  # patterns of case names
    figure: str  # a name in FIGURES, or "mean", which is one figure of all cases together
    bound: float
    peers: tuple[str, ...] = ()  # "ratio" and "mean" have one; "best alternative" any number
    is_stretch: bool = False  # nobody has reached it yet

    @property
    def at_most(self) -> bool:
        return self.figure in ("cost", "times the floor", "seconds", "seconds over the floor")


def _ratio(result: Result, bar: Bar) -> float | None:
    """To the fastest of the peers that could compute the case; all of them must have been asked."""
    asked = {*result["rivals"], *result["unavailable"]}
    if not asked >= set(bar.peers):
        return None
    found = [r for peer in bar.peers if (r := ratio(result, peer, "median")) is not None]
    return min(found, default=None)


def _cost(result: Result, bar: Bar) -> float | None:
    """Our time with the options over our time without."""
    to_plain = ratio(result, "recurra-plain", "median")
    return 1 / to_plain if to_plain else None


def _times_the_floor(result: Result, bar: Bar) -> float | None:
    part = share(result)
    return 1 / part if part else None


def _seconds(result: Result, bar: Bar) -> float | None:
    own = result["rivals"].get(result["subject"])
    return own["median"] if own else None


def _seconds_over(result: Result, bar: Bar) -> float | None:
    own = _seconds(result, bar)
    return own - result["floor"] if own and result["floor"] else None


FIGURES = {
    "ratio": _ratio,
    "best alternative": _ratio,
    "cost": _cost,
    "share of the ceiling": lambda result, bar: share(result),
    "times the floor": _times_the_floor,
    "seconds": _seconds,
    "seconds over the floor": _seconds_over,
}

COMPUTE_BOUND = ("128x32x256x256", "64x64x512x512", "35x20x650x650", "32x256x1024x1024")  # N >= 20, H >= 256
ONE_ROW = ("1x1x128x128", "100x1x256x256", "512x1x512x512")
SMALL = "1000x8x64x64"
MODES = ("inf", "fwd", "bwd")

# Op -> geometric means over the grid against torch on all cores: inference, forward+backward.
MEANS = {"lstm": (1.7, 1.8), "gru": (4.0, 5.0), "rnn": (3.0, 3.5)}

# Shape -> inference, training forward, backward; a star: nobody has reached it yet.
LSTM_TO_ONEDNN = {
    "1x1x128x128": "1.3* 1.6 1.3*",
    "100x1x256x256": "1.6 1.35 1.3",
    "512x1x512x512": "1.4 1.5 1.25",
    "128x32x256x256": "1.05* 1.15 1.10*",
    "64x64x512x512": "1.03* 1.05* 1.05*",
    "35x20x650x650": "1.03* 1.05* 1.05*",
    "256x128x128x128": "1.15* 1.15* 1.15*",
    "32x256x1024x1024": "1.02* 1.02* 1.03*",
    SMALL: "1.9 2.1 1.9",
}
LSTM_TO_TORCH = {
    "1x1x128x128": "20* 12* 12*",
    "100x1x256x256": "2.0 1.8 2.0",
    "512x1x512x512": "1.4 1.5 1.4",
    "128x32x256x256": "1.15 1.9 1.5",
    "64x64x512x512": "1.15 1.6 1.35",
    "35x20x650x650": "1.1 1.2 1.1*",
    "256x128x128x128": "1.3 2.1 2.1",
    "32x256x1024x1024": "1.05* 1.1 1.15",
    SMALL: "2.3 2.6 2.1",
}
LSTM_TIMES_FLOOR = {
    "1x1x128x128": "3* 4* 6*",
    "100x1x256x256": "1.15 1.15 1.25",
    "512x1x512x512": "1.1 1.1 1.15",
    "128x32x256x256": "1.12 1.18 1.15",
    "64x64x512x512": "1.10 1.15 1.12",
    "35x20x650x650": "1.15 1.15 1.2",
    "256x128x128x128": "1.2 1.25 1.3",
    "32x256x1024x1024": "1.12 1.12 1.12",
    SMALL: "1.45 1.5 1.6",
}
GRU_TO_TORCH = {
    "1x1x128x128": "2.4 2.4 2.4",
    "100x1x256x256": "6 8 15",
    "512x1x512x512": "4 5 8",
    "128x32x256x256": "2.4 2.4 2.4",
    "64x64x512x512": "2.4 2.4 2.4",
    "35x20x650x650": "2.4 2.4 2.4",
    "256x128x128x128": "2.4 2.4 2.4",
    "32x256x1024x1024": "2.2 2.2 2.2",
    SMALL: "12 17 22",
}
GRU_TO_ONEDNN = {
    "512x1x512x512": "2.2 1.5 2.0",
    **dict.fromkeys(COMPUTE_BOUND, "1.03* 1.03* 1.03*"),
    "256x128x128x128": "1.15 1.15 1.15",
    SMALL: "1.9 2.3 2.2",
}


def points(op: str, table: dict[str, str], figure: str, *peers: str) -> Iterator[Bar]:
    """A bar for each entry of a table."""
    for shape, row in table.items():
        for mode, word in zip(MODES, row.split(), strict=True):
            what = f"{op} by point"
            yield Bar(what, (f"grid/{op}/{mode}/{shape}",), figure, float(word.rstrip("*")), peers, word.endswith("*"))


def on_grid(shapes: Iterable[str], *modes: str) -> tuple[str, ...]:
    """Patterns of all ops at some shapes, in both directions too."""
    return tuple(f"grid/*/{mode}/{shape}{end}" for mode in modes for shape in shapes for end in ("", "+bidirectional"))


def against_libraries() -> Iterator[Bar]:
    for op, bounds in MEANS.items():
        for mode, bound in zip(("inf", "fb"), bounds, strict=True):
            yield Bar(f"{op} {mode} mean", (f"grid/{op}/{mode}/*",), "mean", bound, ("torch",))
    yield Bar("nowhere slower", ("grid/*",), "ratio", 1.0, ("torch",))
    every = (*MODES, "fb")
    yield Bar("compute-bound", on_grid(COMPUTE_BOUND, *every), "ratio", 0.97, ("onednn",))
    yield Bar("one row", on_grid(ONE_ROW, *every), "ratio", 1.2, ("onednn",))
    yield Bar("small and long", on_grid([SMALL], *every), "ratio", 1.7, ("onednn",))
    yield Bar("rnn nowhere slower", ("grid/rnn/*",), "ratio", 1.0, ("onednn",), is_stretch=True)
    yield Bar("inference", ("grid/*/inf/*",), "ratio", 1.15, ("onnxruntime",))
    yield Bar("inference", ("grid/*/inf/*",), "ratio", 1.03, ("openvino",))
    yield from points("lstm", LSTM_TO_TORCH, "ratio", "torch")
    yield from points("lstm", LSTM_TO_ONEDNN, "ratio", "onednn")
    yield from points("gru", GRU_TO_TORCH, "ratio", "torch")
    yield from points("gru", GRU_TO_ONEDNN, "ratio", "onednn")


def against_the_ceiling() -> Iterator[Bar]:
    yield Bar("inference", on_grid(COMPUTE_BOUND, "inf"), "share of the ceiling", 0.85)
    yield Bar("forward+backward", on_grid(COMPUTE_BOUND, "fb"), "share of the ceiling", 0.80)
    yield from points("lstm", LSTM_TIMES_FLOOR, "times the floor")


def against_ourselves() -> Iterator[Bar]:
    def bf16(shapes: Iterable[str], mode: str) -> tuple[str, ...]:
        return tuple(f"bfloat16/lstm/{mode}/{shape}+bfloat16" for shape in shapes)

    yield Bar("bfloat16 inference", bf16(COMPUTE_BOUND, "inf"), "ratio", 1.8, ("recurra-float32",))
    yield Bar("bfloat16 training", bf16(COMPUTE_BOUND, "fb"), "ratio", 1.5, ("recurra-float32",))
    yield Bar("bfloat16 compute-bound", bf16(COMPUTE_BOUND, "inf"), "ratio", 1.0, ("onednn",))
    yield Bar("bfloat16 one row", bf16(ONE_ROW, "inf"), "ratio", 1.6, ("onednn",))
    yield Bar("bfloat16 small and long", bf16([SMALL], "inf"), "ratio", 2.0, ("onednn",))
    measured = "options/lstm/{}/128x32x256x256+peephole+mask{}"
    for end, bound in (("", 1.07), ("+lengths+resets", 1.12)):
        yield Bar("options", tuple(measured.format(m, end) for m in (*MODES, "fb")), "cost", bound)
    yield Bar("3 % resets", ("resets/*",), "cost", 1.05)


def against_loops() -> Iterator[Bar]:
    alternatives = (*TORCH_LOOPS, "jax")
    yield Bar("options", ("options/lstm/*+peephole+mask",), "best alternative", 1.8, alternatives)
    yield Bar("options", (f"options/lstm/*/{SMALL}+peephole+mask",), "best alternative", 4.0, alternatives)
    yield Bar("3 % resets", ("resets/*",), "ratio", 5.0, ("torch-split",))


def one_step() -> Iterator[Bar]:
    yield Bar("stream", ("stream/*/step/1x1x128x128",), "seconds over the floor", 3e-6)
    yield Bar("stream", ("stream/lstm/step/1x1x256x256", "stream/lstm/step/1x1x512x512"), "ratio", 20, ("torch",))
    yield Bar("stream", ("stream/*",), "ratio", 1.0, ("onnxruntime",))
    yield Bar("op call", ("grid/*/inf/1x1x128x128",), "seconds", 15e-6)


BARS = tuple(
    bar
    for part in (against_libraries, against_the_ceiling, against_ourselves, against_loops, one_step)
    for bar in part()
)


@dataclass(frozen=True)
class Row:
    """A bar at a case, or at all its cases together."""

    bar: Bar
    where: str
    figure: float | None
    note: str = ""
    marks: str = ""

    @property
    def is_met(self) -> bool:
        return self.figure is not None and self.margin >= 1

    @property
    def margin(self) -> float:
        """Figure over bound, or the other way round where less is better: below 1 it is short."""
        if self.figure is None:
            return float("inf")
        if not self.bar.at_most:
            return self.figure / self.bar.bound
        return self.bar.bound / self.figure if self.figure > 0 else float("inf")


def _named(bar: Bar, results: Sequence[Result]) -> list[Result]:
    return [r for r in results if any(fnmatch.fnmatchcase(r["name"], pattern) for pattern in bar.cases)]


def _wrong(bar: Bar, result: Result) -> list[str]:
    return [peer for peer in bar.peers if result["disagreements"].get(peer)]


def _marks(bar: Bar, result: Result) -> str:
    involved = [result["rivals"][p] for p in (result["subject"], *bar.peers) if p in result["rivals"]]
    return ("~" if any(r["disturbed"] for r in involved) else "") + ("*" if is_busy(result) else "")


def _row(bar: Bar, result: Result) -> Row:
    if wrong := _wrong(bar, result):
        return Row(bar, result["name"], None, f"{', '.join(wrong)} disagrees")
    figure = FIGURES[bar.figure](result, bar)
    if figure is None:
        told = [result["unavailable"][p] for p in (result["subject"], *bar.peers) if p in result["unavailable"]]
        return Row(bar, result["name"], None, "; ".join(told) or "not measured")
    return Row(bar, result["name"], figure, marks=_marks(bar, result))


def rows(results: Sequence[Result]) -> list[Row]:
    """Every bar at every result that it speaks of, the greatest shortfall first."""
    found = []
    for bar in BARS:
        its = _named(bar, results)
        if bar.figure != "mean":
            found += [_row(bar, result) for result in its]
        elif its:
            ratios = [_ratio(r, bar) for r in its if not _wrong(bar, r)]
            known = [r for r in ratios if r is not None]
            mean = geometric_mean(known) if known else None
            marks = {mark for r in its for mark in _marks(bar, r)}
            found.append(Row(bar, bar.cases[0], mean, f"{len(known)} cases", "".join(sorted(marks))))
    return sorted(found, key=lambda row: row.margin)


def _as_text(value: float, bar: Bar) -> str:
    if bar.figure.startswith("seconds"):
        return f"{value * 1e6:.1f} us"
    return f"{100 * value:.0f} %" if bar.figure == "share of the ceiling" else f"{value:.2f}"


def table(results: Sequence[Result]) -> str:
    """Met or short, each bar at each case. "?": disturbed, or the machine was busy. A stretch: nobody was there yet."""
    found = rows(results)
    lines = [f"{'bar':26}{'figure':24}{'case':{NAME}}{'got':>10}{'bar':>10}{'got/bar':>9}"]
    for row in found:
        bar = row.bar
        if row.figure is None:
            continue
        kind = "to " + bar.peers[0] if bar.figure in ("ratio", "mean") else bar.figure
        verdict = ("met" if row.is_met else "SHORT") + ("?" if row.marks else "")
        lines.append(
            f"{bar.what:26}{kind:24}{row.where:{NAME}}{_as_text(row.figure, bar):>10}{_as_text(bar.bound, bar):>10}"
            f"{row.margin:>9.2f} {verdict}{' (stretch)' if bar.is_stretch else ''} {row.marks} {row.note}".rstrip()
        )
    known = [r for r in found if r.figure is not None]
    for name, some in (
        ("bars", [r for r in known if not r.bar.is_stretch]),
        ("stretches", [r for r in known if r.bar.is_stretch]),
    ):
        sound = [r for r in some if not r.marks]
        counts = sum(r.is_met for r in sound), sum(not r.is_met for r in sound), len(some) - len(sound)
        lines.append(f"{name}: {counts[0]} met, {counts[1]} short, {counts[2]} to be measured again")
    told = [f"{r.bar.what}, {' '.join(r.bar.peers) or r.bar.figure}: {r.note}" for r in found if r.figure is None]
    lines += [f"no figure: {text} ({told.count(text)} cases)" for text in dict.fromkeys(told)]
    asked = [name for name in CASES if any(fnmatch.fnmatchcase(name, p) for bar in BARS for p in bar.cases)]
    ran = {r["name"] for r in results}
    silent = [name.rpartition("/")[0] for name in asked if name not in ran]
    if silent:
        lines.append("not run: " + ", ".join(f"{kind} ({silent.count(kind)})" for kind in dict.fromkeys(silent)))
    return "\n".join(lines)


def read(paths: Iterable[pathlib.Path]) -> list[Result]:
    """The results of several files; where two have the same case, the one that is named later."""
    found: dict[str, Result] = {}
    for path in paths:
        for result in json.loads(path.read_text())["cases"]:
            found[result["name"]] = result
    return list(found.values())
