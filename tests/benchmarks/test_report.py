"""Results as text, against the bars, and as a picture."""

from __future__ import annotations

import fnmatch
import json
from pathlib import Path

import bars
from bars import BARS
from cases import CASES
import pytest
import report

from benchmarks.suite import result, run, times

GRID = "grid/lstm/inf/128x32x256x256"
SMALL = "grid/lstm/inf/1000x8x64x64"


def test_ratios_are_their_time_over_ours() -> None:
    r = result(GRID, {"recurra": 1.0, "torch": 2.0})
    assert report.ratio(r, "torch", "median") == 2
    assert report.ratio(r, "jax", "median") is None
    assert report.share(r) == 0.5
    assert report.quartiles(r, "torch") == pytest.approx((2, 2))
    r["rivals"]["torch"]["by_turn"] = [1.8, 2.2, 2.2, 4.4]
    r["rivals"]["recurra"]["by_turn"] = [0.9, 1.0, 1.1, 1.1]
    assert report.quartiles(r, "torch") == pytest.approx((2.0, 2.2))


def test_a_line_marks_what_is_doubtful() -> None:
    r = result(GRID, {"recurra": 1e-3, "torch": 2e-3, "onednn": 1e-3}, others=0.5, floor=None)
    r["rivals"]["torch"]["disturbed"] = True
    r["disagreements"]["onednn"] = ["y: off"]
    words = report.line(r, ["torch", "onednn", "jax"]).split()
    assert words == [GRID, "*1", "(0.8)", "-", "~2.00", "(2.00)", "!1.00", "(1.00)", "-"]


def test_a_line_without_our_time_says_so() -> None:
    r = result(GRID, {"torch": 1.0}, unavailable={"recurra": "why"})
    assert report.line(r, ["torch"]).split() == [GRID, "-"]
    assert report.reasons([r, r]) == "- recurra: why (2 cases)"
    assert report.means([r]) == []


def test_means_leave_out_who_disagrees() -> None:
    right = result(GRID, {"recurra": 1.0, "torch": 2.0})
    also_right = result(SMALL, {"recurra": 1.0, "torch": 8.0})
    wrong = result(GRID, {"recurra": 1.0, "torch": 100.0}, disagreements={"torch": ["y: off"]})
    (row,) = report.means([right, also_right, wrong])
    assert (row["cases"], row["worst"]) == (2, 2)
    assert row["median"] == pytest.approx(4)


def test_every_bar_speaks_of_cases_that_exist_and_of_peers_they_have() -> None:
    for bar in BARS:
        for pattern in bar.cases:
            found = [c for name, c in CASES.items() if fnmatch.fnmatchcase(name, pattern)]
            # Only one shape is measured in both directions.
            assert found or pattern.endswith("+bidirectional"), pattern
            assert all(set(bar.peers) <= {*c.peers} for c in found), pattern
            assert bar.figure != "cost" or all("recurra-plain" in c.peers for c in found)
        assert bar.figure == "mean" or bar.figure in bars.FIGURES


def only(results: list[dict[str, object]], what: str, figure: str, *peers: str) -> bars.Row:
    (row,) = [r for r in bars.rows(results) if (r.bar.what, r.bar.figure, r.bar.peers) == (what, figure, peers)]
    return row


def test_a_ratio_is_met_from_its_bound_on() -> None:
    for onednn, is_met in ((0.96, False), (0.97, True)):
        row = only([result(GRID, {"recurra": 1.0, "onednn": onednn})], "compute-bound", "ratio", "onednn")
        assert (row.figure, row.is_met) == (onednn, is_met)
        assert row.margin == pytest.approx(onednn / 0.97)


def test_less_is_better_for_costs_and_seconds() -> None:
    name = "options/lstm/fb/128x32x256x256+peephole+mask"
    dear = only([result(name, {"recurra": 1.10, "recurra-plain": 1.0})], "options", "cost")
    assert dear.figure == pytest.approx(1.10)
    assert not dear.is_met
    assert only([result(name, {"recurra": 1.06, "recurra-plain": 1.0})], "options", "cost").is_met
    name = "stream/lstm/step/1x1x128x128"
    times = {"recurra-stream": 5e-6}
    assert only([result(name, times, floor=1e-6)], "stream", "seconds over the floor").figure == pytest.approx(4e-6)
    assert only([result(name, times, floor=3e-6)], "stream", "seconds over the floor").is_met


def test_the_best_alternative_is_the_fastest() -> None:
    name = "options/lstm/fb/128x32x256x256+peephole+mask"
    medians = {"recurra": 1.0, "torch-loop": 5.0, "torch-script": 4.0, "jax": 1.5}
    peers = ("torch-loop", "torch-script", "torch-compile", "jax")
    missing = result(name, medians)
    assert only([missing], "options", "best alternative", *peers).figure is None
    asked = {**missing, "unavailable": {"torch-compile": "no compiler"}}
    assert only([asked], "options", "best alternative", *peers).figure == 1.5


def test_means_and_points_are_sorted_by_shortfall() -> None:
    results = [result(GRID, {"recurra": 1.0, "torch": 1.0}), result(SMALL, {"recurra": 1.0, "torch": 4.0})]
    mean = only(results, "lstm inf mean", "mean", "torch")
    assert mean.figure == pytest.approx(2)
    assert mean.is_met
    margins = [row.margin for row in bars.rows(results)]
    assert margins == sorted(margins)
    assert margins[0] < 1


def test_a_disagreement_gives_no_figure() -> None:
    r = result(GRID, {"recurra": 1.0, "torch": 9.0}, disagreements={"torch": ["y: off"]})
    row = only([r], "nowhere slower", "ratio", "torch")
    assert (row.figure, row.note, row.is_met) == (None, "torch disagrees", False)
    assert only([r], "lstm inf mean", "mean", "torch").figure is None
    assert "no figure: nowhere slower, torch: torch disagrees (1 cases)" in bars.table([r])


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "results.json"
    first = result(GRID, {"recurra": 1.0, "torch": 1.2, "onednn": 0.9})
    second = result(SMALL, {"recurra": 1.0, "torch": 3.0}, disagreements={"torch": ["y: off"]}, others=0.5)
    second["rivals"]["recurra"] = times(1.0, disturbed=True)
    without = result("grid/lstm/fb/1000x8x64x64", {}, unavailable={"recurra": "why"})
    path.write_text(json.dumps({"cases": [first, second, without]}))
    return path


def test_bars_of_a_file_are_printed(written: Path) -> None:
    done = run("--bars", written)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    short = next(line for line in lines if line.startswith("compute-bound") and "to onednn" in line)
    assert short.split()[-4:] == ["0.90", "0.97", "0.93", "SHORT"]
    assert any(line.startswith("nowhere slower") and line.endswith("met") for line in lines)
    disturbed = next(line for line in lines if SMALL in line and "times the floor" in line)
    assert disturbed.split()[-4:] == ["1.45", "0.72", "SHORT?", "~*"]
    assert any(line.startswith("bars: ") and line.endswith("to be measured again") for line in lines)
    assert any(line.startswith("not run: grid/lstm/inf (8), ") for line in lines)


def test_of_two_files_the_later_wins(written: Path, tmp_path: Path) -> None:
    later = tmp_path / "later.json"
    later.write_text(json.dumps({"cases": [result(GRID, {"recurra": 1.0, "torch": 7.0})]}))
    results = bars.read([written, later])
    assert len(results) == 3
    assert report.ratio(results[0], "torch", "median") == 7


def test_a_chart_is_drawn_beside_the_results(written: Path) -> None:
    done = run("--chart", written)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    path = written.with_suffix(".png")
    assert done.stdout == f"drawn: {path}\n"
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 10_000


def test_nothing_to_draw_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    path.write_text(json.dumps({"cases": []}))
    done = run("--chart", path)
    assert done.returncode == 2
    assert f"--chart must name results with times, got none in {path}" in done.stderr


@pytest.mark.parametrize("option", ["--chart", "--bars"])
def test_a_file_that_is_missing_is_named(option: str, tmp_path: Path) -> None:
    done = run(option, tmp_path / "none.json")
    assert done.returncode == 2
    assert f"no such file: {tmp_path / 'none.json'}" in done.stderr
