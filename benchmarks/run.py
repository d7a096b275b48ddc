"""Times the recurrent ops against other libraries and against the machine's ceiling: docs/benchmarks.md.

python benchmarks/run.py --quick                      a few cases, recurra and torch
python benchmarks/run.py --op lstm --mode fb          some cases
python benchmarks/run.py --case '*1000x8*' --list     what there is
python benchmarks/run.py --base main --op gru         this tree against another commit
python benchmarks/run.py --chart FILE.json ...        a picture of results
python benchmarks/run.py --bars FILE.json ...         what the kernels must reach, met or short; without a file: runs
python benchmarks/run.py --graph-overhead             what a graph costs above the array library's own calls
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
import dataclasses
import fnmatch
import json
import pathlib
import sys
from typing import Any

import bars
import base
from cases import CASES, MODES, OPS, TINY, Case
import ceiling
import contest
import gate
from inputs import Numbers, numbers
from machine import description
import report
from rivals import PEERS, Unavailable
import timing

HERE = pathlib.Path(__file__).parent
Enter = Callable[[str, Case, Numbers], "contest.Here | contest.Elsewhere"]
QUICK = ("1x1x128x128", "100x1x256x256", "128x32x256x256", "1000x8x64x64")


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--case", action="append", metavar="GLOB", help="cases by name; may be given several times")
    p.add_argument("--group", action="append", choices=sorted({c.group for c in CASES.values()}))
    p.add_argument("--op", action="append", choices=OPS)
    p.add_argument("--mode", action="append", choices=list(MODES))
    p.add_argument("--peer", action="append", metavar="NAME", help="some peers only: " + ", ".join(PEERS))
    p.add_argument("--quick", action="store_true", help="four shapes, torch as the only peer, half a second a case")
    p.add_argument("--tiny", action="store_true", help="one case of a few numbers: does everything run?")
    p.add_argument("--seconds", type=float, help="to spend on a case, all rivals together; 2 by default")
    p.add_argument("--list", action="store_true", help="print the names of the cases and of their peers")
    p.add_argument("--json", type=pathlib.Path, help="where the results go; benchmarks/results/ by default")
    p.add_argument("--ungated", action="store_true", help="skip the tests; such numbers do not count, and say so")
    p.add_argument("--base", metavar="REV", help="compare with another commit instead of with other libraries")
    p.add_argument("--chart", type=pathlib.Path, nargs="+", metavar="JSON", help="draw results written before")
    p.add_argument(
        "--bars",
        type=pathlib.Path,
        nargs="*",
        metavar="JSON",
        help="hold results written before against the bars; without a file, those of this run",
    )
    p.add_argument("--graph-overhead", action="store_true", help="run benchmarks/graph_overhead.py")
    return p


def chosen(o: argparse.Namespace) -> list[Case]:
    """The cases that the options name."""
    cases = (
        [TINY]
        if o.tiny
        else [
            c
            for c in CASES.values()
            if (not o.case or any(fnmatch.fnmatch(c.name, g) or g in c.name for g in o.case))
            and (not o.group or c.group in o.group)
            and (not o.op or c.op in o.op)
            and (not o.mode or c.mode in o.mode)
        ]
    )
    if o.quick:
        cases = [c for c in cases if c.group == "grid" and c.shape in QUICK]
    if o.quick and not o.peer:
        cases = [dataclasses.replace(c, peers=("torch",)) for c in cases]
    elif o.peer:
        wanted = {name for given in o.peer for name in given.split(",")}
        cases = [dataclasses.replace(c, peers=tuple(p for p in c.peers if p in wanted)) for c in cases]
    return cases


def run_case(case: Case, seconds: float, floor: float | None, enter: Enter) -> report.Result:
    """One case: everybody's numbers compared, then everybody's time taken."""
    given = numbers(case)
    contestants: dict[str, contest.Here | contest.Elsewhere] = {}
    result: report.Result = {
        **dataclasses.asdict(case),
        "name": case.name,
        "floor": floor,
        "rivals": {},
        "unavailable": {},
        "disagreements": {},
        "others": None,
    }
    try:
        for peer in (case.subject, *case.peers):
            try:
                contestants[peer] = enter(peer, case, given)
            except Unavailable as reason:
                result["unavailable"][peer] = str(reason)
                if peer == case.subject:
                    return result
        own = contestants[case.subject].results()
        for peer, contestant in contestants.items():
            # Without the options other numbers come out.
            if peer != case.subject and not (peer in PEERS and PEERS[peer].computes_something_else):
                result["disagreements"][peer] = contest.disagreements(case, own, contestant.results())
        del own
        run = timing.measured(contestants, seconds)
        result["rivals"] = {name: found.summary() for name, found in run.times.items()}
        result["others"] = run.others
    finally:
        for contestant in contestants.values():
            contestant.close()
    return result


def write(path: pathlib.Path, written: dict[str, Any]) -> None:
    """The results so far, whole or not at all: a run may be stopped at any moment."""
    beside = path.with_name(path.name + ".part")
    beside.write_text(json.dumps(written, indent=1) + "\n")
    beside.replace(path)


def prepared(o: argparse.Namespace, cases: Sequence[Case]) -> tuple[dict[str, Any], ceiling.Ceiling | None]:
    """The gate and the ceiling, and what is written down before the first case. Raises gate.Red."""
    written: dict[str, Any] = {"format": 2, **description(), "gate": "skipped", "ceiling": None}
    if o.ungated:
        print("ungated: no test ran before these numbers, so they do not count")
    else:
        written["gate"] = gate.check(c.op for c in cases)
        print(f"gate: {written['gate']['passed']}")
    try:
        limit = ceiling.measure(contest.cores())
    except ceiling.NoCompiler as error:
        print(f"no ceiling, no floors: {error}")
        return written, None
    rates = [f"{k} {v / 1e9:.0f}" for k, v in limit.all.items()]
    print(f"ceiling on {limit.threads} threads, Gflop/s and GB/s: {', '.join(rates)}")
    return {**written, "ceiling": limit.as_json()}, limit


def recurrent(o: argparse.Namespace, cases: Sequence[Case], enter: Enter, **more: Any) -> int:
    """Gate, ceiling, cases, means; the results as JSON."""
    try:
        written, limit = prepared(o, cases)
    except gate.Red as error:
        print(error, "\nThe gate is red: no numbers.", sep="\n")
        return 1
    print(report.LEGEND, end="\n\n")
    seconds = o.seconds or (0.5 if o.quick else 2.0)
    results: list[report.Result] = []
    written |= {"seconds": seconds, **more, "cases": results}
    path = o.json or HERE / "results" / f"{written['date'].replace(':', '')}-{written['commit'][:8]}.json"
    last: list[str] = []
    stopped = False
    try:
        for case in cases:
            results.append(run_case(case, seconds, ceiling.floor(case, limit) if limit else None, enter))
            write(path, written)
            peers = list(case.peers)
            if peers != last:
                print(report.head(peers))
                last = peers
            print(report.line(results[-1], peers), flush=True)
    except KeyboardInterrupt:
        stopped = True
        print(f"\nstopped: {len(results)} of {len(cases)} cases are whole, and these count")
    print("", report.means_table(results), report.reasons(results), "", sep="\n")
    if o.bars is not None:
        print(bars.table(results), end="\n\n")
    if results:
        print(f"written to {path}")
    return 130 if stopped else 0


def against_base(o: argparse.Namespace, cases: list[Case]) -> int:
    """This tree against another commit."""
    try:
        with base.built(o.base) as other:
            print(f"base: {other.commit}")
            return recurrent(o, base.against(cases), other.enter, base=other.commit)
    except base.Unbuildable as error:
        print(error)
        return 1


def main() -> int:
    """Run what was asked for."""
    p = parser()
    o = p.parse_args()
    if missing := [str(path) for path in (*(o.chart or ()), *(o.bars or ())) if not path.is_file()]:
        p.error(f"no such file: {', '.join(missing)}")
    if o.chart:
        import chart  # matplotlib takes a second to load

        try:
            print(f"drawn: {chart.draw(o.chart)}")
        except chart.NothingToDraw as error:
            p.error(str(error))
        return 0
    if o.bars:
        print(bars.table(bars.read(o.bars)))
        return 0
    if o.graph_overhead:
        import graph_overhead

        print(graph_overhead.table())
        return 0
    unknown = {name for given in o.peer or () for name in given.split(",")} - PEERS.keys()
    if unknown:
        p.error(f"--peer must be of {', '.join(PEERS)}; got {', '.join(sorted(unknown))}")
    if o.seconds is not None and o.seconds <= 0:
        p.error(f"--seconds must be more than 0, got {o.seconds}")
    cases = chosen(o)
    if not cases:
        p.error("no case has all of these; --list shows what there is")
    if o.list:
        for case in cases:
            print(f"{case.name:{report.NAME}}{' '.join(case.peers)}")
        return 0
    if o.base:
        return against_base(o, cases)
    return recurrent(o, cases, contest.enter)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # before the first case
        sys.exit(130)
