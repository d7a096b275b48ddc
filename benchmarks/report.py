"""Results as text: a line a case, and geometric means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import math
from typing import Any

from cases import CASES
from timing import BUSY

Result = dict[str, Any]
# The longest name of a case, and some space.
NAME = max(len(name) for name in CASES) + 2

LEGEND = """\
ms: median (least). floor: the least time possible, as a share of the median.
Others: their time over ours, by medians (by least times); above 1 we are faster. base: [quartiles of the rounds].
~ disturbed: a median above 1.5x its least time, twice. * other processes used more than 0.1 CPU meanwhile, twice.
! disagrees with our numbers. - not here, or cannot."""


def ratio(result: Result, peer: str, by: str) -> float | None:
    """A peer's time over the subject's, or None where one of them has none."""
    rivals, subject = result["rivals"], result["subject"]
    if peer not in rivals or subject not in rivals:
        return None
    return rivals[peer][by] / rivals[subject][by]


def quartiles(result: Result, peer: str) -> tuple[float, float]:
    """Of the ratios of single rounds, in which both had their turns at nearly the same time."""
    theirs, ours = (result["rivals"][name]["by_turn"] for name in (peer, result["subject"]))
    ordered = sorted(t / o for t, o in zip(theirs, ours, strict=True))
    return ordered[len(ordered) // 4], ordered[(3 * len(ordered) - 1) // 4]


def share(result: Result) -> float | None:
    """The floor over the subject's median."""
    own = result["rivals"].get(result["subject"])
    return result["floor"] / own["median"] if result["floor"] and own else None


def is_busy(result: Result) -> bool:
    """Other processes worked meanwhile."""
    return (result["others"] or 0) > BUSY


def cell(result: Result, peer: str) -> str:
    by_median = ratio(result, peer, "median")
    if by_median is None:
        return "-"
    marks = "~" if result["rivals"][peer]["disturbed"] else ""
    marks += "!" if result["disagreements"].get(peer) else ""
    if peer == "base":
        low, high = quartiles(result, peer)
        return f"{marks}{by_median:.2f} [{low:.2f} {high:.2f}]"
    return f"{marks}{by_median:.2f} ({ratio(result, peer, 'least'):.2f})"


def columns(result: Result) -> list[str]:
    return [peer for peer in [*result["rivals"], *result["unavailable"]] if peer != result["subject"]]


def head(peers: Sequence[str]) -> str:
    return "".join([f"{'case':{NAME}}{'ms':>22}{'floor':>8}", *(f"{peer:>20}" for peer in peers)])


def line(result: Result, peers: Sequence[str]) -> str:
    own = result["rivals"].get(result["subject"])
    if own is None:
        return f"{result['name']:{NAME}}{'-':>22}"
    mark = ("*" if is_busy(result) else "") + ("~" if own["disturbed"] else "")
    ms = f"{mark}{own['median'] * 1e3:.4g} ({own['least'] * 1e3:.4g})"
    of_floor = share(result)
    part = f"{100 * of_floor:.0f} %" if of_floor is not None else "-"
    return "".join([f"{result['name']:{NAME}}{ms:>22}{part:>8}", *(f"{cell(result, peer):>20}" for peer in peers)])


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs))


def means(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Per group, op and mode and per peer: the geometric mean of the ratios, over the cases that have one."""
    rows = []
    keys = list(dict.fromkeys((r["group"], r["op"], r["mode"]) for r in results))
    for key in keys:
        own = [r for r in results if (r["group"], r["op"], r["mode"]) == key]
        for peer in dict.fromkeys(p for r in own for p in columns(r)):
            counted = [r for r in own if ratio(r, peer, "median") and not r["disagreements"].get(peer)]
            if counted:
                by = {b: geometric_mean(ratio(r, peer, b) or 0 for r in counted) for b in ("median", "least")}
                least = min(ratio(r, peer, "median") or 0 for r in counted)
                rows.append(
                    dict(zip(("group", "op", "mode"), key, strict=True))
                    | {"peer": peer, "cases": len(counted), **by, "worst": least}
                )
    return rows


def means_table(results: Sequence[Result]) -> str:
    """`means` as text."""
    lines = [f"{'geometric mean of':28}{'peer':>18}{'cases':>7}{'by medians':>12}{'by least':>10}{'worst case':>12}"]
    for row in means(results):
        name = f"{row['group']}/{row['op']}/{row['mode']}"
        lines.append(
            f"{name:28}{row['peer']:>18}{row['cases']:>7}{row['median']:>12.2f}{row['least']:>10.2f}{row['worst']:>12.2f}"
        )
    return "\n".join(lines)


def reasons(results: Sequence[Result]) -> str:
    """Why peers are missing, and where they disagree, each reason once."""
    told: dict[str, int] = {}
    for r in results:
        for peer, reason in r["unavailable"].items():
            told[f"{peer}: {reason}"] = told.get(f"{peer}: {reason}", 0) + 1
        for peer, differences in r["disagreements"].items():
            if differences:
                told[f"{peer} disagrees at {r['name']}: {'; '.join(differences)}"] = 1
    return "\n".join(f"- {text}" + (f" ({n} cases)" if n > 1 else "") for text, n in told.items())
