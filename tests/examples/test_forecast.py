"""The CO2 forecast of the examples: what it writes and prints, that it never looks ahead, and that it repeats."""

from __future__ import annotations

import csv
import io
from pathlib import Path
import re
import signal
import subprocess
import sys

from matplotlib import image
import numpy as np
import pytest

from examples import programs

program = programs.load("forecast_co2")
DATES, PPM = program.load()
SPLIT = len(PPM) - program.HELD_OUT
FORECASTERS = ["LSTM", "last value", "same week a year before", "year before + last year's rise"]
SMALL = ("--epochs", "1", "--hidden", "4", "--batch", "256")


def shuffled_after(ppm: np.ndarray, week: int) -> np.ndarray:
    """Everything after a week in another order, far away, and with gaps."""
    rng = np.random.default_rng(week)
    changed = ppm.copy()
    changed[week + 1 :] = rng.permutation(changed[week + 1 :]) + 1000
    changed[week + 1 :: 3] = np.nan
    return changed


def rows_of_table(text: str) -> dict[str, list[float]]:
    """The errors that the printed table gives to each forecaster."""
    rows = {}
    for name in FORECASTERS:
        (numbers,) = re.findall(rf"^{re.escape(name)}((?: +\d+\.\d\d){{5}})$", text, re.MULTILINE)
        rows[name] = [float(number) for number in numbers.split()]
    return rows


def without_times(text: str) -> str:
    return re.sub(r" +\d+ s left", "", text)


# --- what a person sees ---


def test_command_prints_a_table_and_writes_plots_and_forecast(tmp_path: Path) -> None:
    out = tmp_path / "made" / "here"
    text = programs.run("forecast_co2", "--epochs", 3, "--hidden", 16, "--out", out)
    assert "2284 weeks, 1958-03-29 to 2001-12-29.\nNot measured: 59 weeks of the training years" in text
    assert re.search(r"^loss \d\.\d{3} in epoch 1, \d\.\d{3} in epoch 3$", text, re.MULTILINE)
    errors = rows_of_table(text)
    # The rules have known errors: those of the LSTM are measured in the same units.
    assert errors["last value"][-1] == pytest.approx(2.41, abs=0.01)
    assert errors["same week a year before"][-1] == pytest.approx(1.41, abs=0.01)
    assert errors["LSTM"][-1] < 0.45 < errors["year before + last year's rise"][-1]
    assert "The LSTM wins: " in text

    assert sorted(p.name for p in out.iterdir()) == ["forecast.csv", "forecast.png", "loss.png"]
    for name in ("forecast.png", "loss.png"):
        pixels = image.imread(out / name)
        assert pixels.shape[0] >= 400
        assert pixels.shape[1] >= 800
        assert 0.01 < (pixels[..., :3].min(axis=2) < 0.9).mean() < 0.5, f"{name}: drawn neither blank nor full"
    with (out / "forecast.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [rows[0]["date"], rows[-1]["date"], len(rows)] == ["2002-01-05", "2002-12-28", program.AHEAD]
    forecast, low, high = (np.array([float(row[key]) for row in rows]) for key in ("forecast", "low", "high"))
    assert (low < forecast).all()
    assert (forecast < high).all()
    # CO2 rises, by 1 to 3 ppm a year.
    rise = forecast.mean() - PPM[-program.YEAR :].mean()
    assert 1 < rise < 3


def test_same_seed_repeats_and_another_does_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(seed: int, out: str) -> tuple[str, str]:
        assert program.main([*SMALL, "--seed", str(seed), "--out", str(tmp_path / out)]) == 0
        printed = without_times(capsys.readouterr().out).replace(str(tmp_path / out), "OUT")
        return printed, (tmp_path / out / "forecast.csv").read_text(encoding="utf-8")

    first, again, other = run(5, "first"), run(5, "again"), run(6, "other")
    assert first == again
    assert first[1] != other[1]


def test_without_matplotlib_it_says_how_to_get_it_and_goes_on(tmp_path: Path) -> None:
    path = programs.command("forecast_co2")[1]
    code = (
        "import runpy, sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.figure'] = None;"
        f"sys.argv = ['forecast_co2', *{SMALL!r}, '--out', {str(tmp_path)!r}];"
        f"runpy.run_path({path!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "The plots need matplotlib: pip install 'recurra[plot]'" in done.stdout
    assert len(rows_of_table(done.stdout)) == 4
    assert [p.name for p in tmp_path.iterdir()] == ["forecast.csv"]


@pytest.mark.skipif(sys.platform == "win32", reason="sends the signal of Ctrl-C, which needs Linux or macOS")
def test_interrupt_ends_it_with_a_word_and_no_traceback(tmp_path: Path) -> None:
    command = programs.command("forecast_co2", "--epochs", 100_000, "--hidden", 4, "--batch", 512, "--out", tmp_path)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            if line.startswith("epoch"):
                break
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert process.stdout.read().endswith("Stopped.\n")
        assert process.stderr.read() == ""
    assert list(tmp_path.iterdir()) == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(program.time, "monotonic", iter(np.arange(0, 100, 1.0)).__next__)
    progress = program.Progress(epochs=2, batches=3)
    for loss in (0.9, 0.8, 0.7, 0.6, 0.5, 0.4):
        progress.show(loss)
    drawn = screen.getvalue()
    assert drawn.count("\n") == 1
    assert drawn.endswith(f"\r[{'=' * 24}] epoch 2/2  loss 0.400    0 s left\n")
    assert f"\r[{'=' * 8}{' ' * 16}] epoch 1/2  loss 0.800    4 s left" in drawn
    assert max(map(len, drawn.split("\r"))) < 80


@pytest.mark.parametrize("epochs", [1, 4, 7, 40])
def test_progress_is_a_few_lines_elsewhere(epochs: int, capsys: pytest.CaptureFixture[str]) -> None:
    progress = program.Progress(epochs, batches=3)
    for _ in range(3 * epochs):
        progress.show(0.5)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 8
    assert f"epoch {epochs}/{epochs}  loss 0.500  0 s left" == lines[-1]


@pytest.mark.parametrize(
    ("own", "verdict"), [(0.3, "The A wins: over all weeks it is off by 0.30"), (0.6, "The A does not win")]
)
def test_table_says_plainly_who_wins(own: float, verdict: str) -> None:
    text = program.table({"A": [9.0] * 4 + [own], "b": [0.1] * 4 + [0.5], "c": [0.1] * 4 + [0.9]})
    last = text.splitlines()[-1]
    assert last.startswith(verdict)
    assert re.search(r"\(b\) by 0\.50|b by only 0\.50", last)


@pytest.mark.parametrize("option", ["--epochs", "--hidden", "--batch"])
def test_wrong_options_are_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        program.main([option, "0"])
    assert f"argument {option}: must be 1 or more, got 0" in capsys.readouterr().err


# --- nothing looks ahead ---


def test_shuffling_the_future_changes_no_training_input() -> None:
    origins = program.training_origins(SPLIT)
    assert program.weeks_ahead(origins).max() == SPLIT - 1
    series = program.Series.prepare(PPM, SPLIT)
    other = program.Series.prepare(shuffled_after(PPM, SPLIT - 1), SPLIT)
    assert (series.mean, series.deviation) == (other.mean, other.deviation)
    np.testing.assert_array_equal(series.windows(origins), other.windows(origins))
    np.testing.assert_array_equal(series.answers(origins), other.answers(origins))
    assert np.isfinite(series.windows(origins)).all()
    assert np.isfinite(series.answers(origins)).all()


@pytest.mark.parametrize("origin", [SPLIT - 1, SPLIT + 20, len(PPM) - program.AHEAD - 1])
def test_a_forecast_knows_nothing_after_its_origin(origin: int) -> None:
    series = program.Series.prepare(PPM, SPLIT)
    other = program.Series.prepare(shuffled_after(PPM, origin), SPLIT)
    at = np.array([origin])
    np.testing.assert_array_equal(series.windows(at), other.windows(at))
    np.testing.assert_array_equal(series.to_ppm(at, np.zeros((1, 52))), other.to_ppm(at, np.zeros((1, 52))))
    for name, forecast in program.rules(series, at).items():
        np.testing.assert_array_equal(forecast, program.rules(other, at)[name], err_msg=name)
    # The window ends at the origin: that week does count.
    changed = PPM.copy()
    changed[origin] += 1
    assert (program.Series.prepare(changed, SPLIT).windows(at) != series.windows(at)).any()


def test_gaps_are_bridged_before_the_split_and_carried_after_it() -> None:
    gap = np.nan
    ppm = np.array([1.0, gap, 3.0, gap, gap, 9.0, gap, 11.0])
    assert program.fill(ppm, 4).tolist() == [1, 2, 3, 3, 3, 9, 9, 11]
    assert program.fill(ppm, 8).tolist() == [1, 2, 3, 5, 7, 9, 10, 11]
    assert np.isnan(ppm[1])  # the series itself stays as it was measured


def test_answers_turned_back_are_the_measurements() -> None:
    series = program.Series.prepare(PPM, SPLIT)
    origins = np.arange(SPLIT - 1, len(PPM) - program.AHEAD)
    np.testing.assert_allclose(
        series.to_ppm(origins, series.answers(origins)), series.ppm[program.weeks_ahead(origins)], rtol=0, atol=1e-5
    )


def test_weeks_without_a_measurement_are_not_counted() -> None:
    truth = np.zeros((2, program.AHEAD))
    truth[1, 0] = np.nan
    assert program.errors_by_horizon(np.ones((2, program.AHEAD)), truth) == [1.0] * 5
    truth[0, 0] = 3.0
    assert program.errors_by_horizon(np.ones((2, program.AHEAD)), truth)[0] == pytest.approx((2 + 6) / 7)


# --- the data ---


def test_data_are_what_their_readme_says() -> None:
    path = program.DATA
    assert path.stat().st_size < 50_000
    assert len(DATES) == 2284
    assert np.isnan(PPM).sum() == 59
    assert (np.diff(DATES) == np.timedelta64(7, "D")).all()
    assert [str(DATES[0]), str(DATES[-1]), PPM[0], PPM[-1]] == ["1958-03-29", "2001-12-29", 316.1, 371.5]
    assert np.nanmin(PPM) == 313.0
    assert np.nanmax(PPM) == 373.9
    readme = " ".join((path.parent / "README.md").read_text(encoding="utf-8").split())
    for fact in ("2284 rows", "59 weeks without a measurement", "1958-03-29 to 2001-12-29", "public domain"):
        assert fact in readme
