"""Forecast the CO2 in the air of Mauna Loa a year ahead, with an LSTM that is trained here.

    python examples/forecast_co2.py

The model reads the last 52 weeks and predicts the next 52 at once. What it reads and predicts is the change against a
year before (the mean of five weeks then): that takes out the season and most of the rise. The last two years are held
out: they are forecast from every week with what was known then, and compared with three simple rules. They were calm
years: by the same code, 1998 and 1999, when an El Nino had raised CO2, are forecast with more than twice
the error.

Needs NumPy and recurra; the plots need matplotlib.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import dataclass
from pathlib import Path
import sys
import time

import numpy as np

import recurra
from recurra import ops

DATA = Path(__file__).parent / "data" / "co2_weekly.csv"
YEAR = 52  # weeks
WINDOW = YEAR  # weeks that the model reads
AHEAD = YEAR  # weeks that it predicts
AROUND = 2  # a level a year before is the mean of that week and so many on either side
FIRST = YEAR + AROUND  # the first week with a level a year before
HELD_OUT = 2 * YEAR
HORIZONS = ((1, 4), (5, 13), (14, 26), (27, 52))  # weeks ahead, as the table groups them


# --- the series ---


def load(path: Path = DATA) -> tuple[np.ndarray, np.ndarray]:
    """Dates and ppm; NaN where a week was not measured."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    dates = np.array([row["date"] for row in rows], dtype="datetime64[D]")
    return dates, np.array([float(row["co2"] or "nan") for row in rows])


def fill(ppm: np.ndarray, split: int) -> np.ndarray:
    """The series without gaps. Nothing before `split` is made from values after it.

    Before `split`, gaps are bridged by straight lines; from there on, by the last known value, since whoever forecasts
    does not have the next one yet.
    """
    filled = ppm.copy()
    known = np.flatnonzero(~np.isnan(ppm[:split]))
    filled[:split] = np.interp(np.arange(split), known, ppm[known])
    for week in range(split, len(ppm)):
        if np.isnan(filled[week]):
            filled[week] = filled[week - 1]
    return filled


def year_before(ppm: np.ndarray, weeks: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The level a year before `weeks`, from values up to the week `known`. One week alone carries its weather along."""
    around = [ppm[np.minimum(weeks - YEAR + k, known)] for k in range(-AROUND, AROUND + 1)]
    return np.mean(around, axis=0)


@dataclass(frozen=True)
class Series:
    """The filled series, its change against a year before, and the scale of that change before `split`."""

    ppm: np.ndarray
    change: np.ndarray  # NaN before FIRST
    mean: float
    deviation: float

    @classmethod
    def prepare(cls, ppm: np.ndarray, split: int) -> Series:
        """Fill and scale; the scale comes from the weeks before `split` alone."""
        filled = fill(ppm, split)
        weeks = np.arange(FIRST, len(ppm))
        change = np.full(len(ppm), np.nan)
        change[FIRST:] = filled[FIRST:] - year_before(filled, weeks, weeks)
        before = change[FIRST:split]
        return cls(filled, change, float(before.mean()), float(before.std()))

    def windows(self, origins: np.ndarray) -> np.ndarray:
        """What the model reads when `origins` are the last known weeks: [N, WINDOW], scaled."""
        weeks = origins[:, None] + np.arange(1 - WINDOW, 1)
        return ((self.change[weeks] - self.mean) / self.deviation).astype(np.float32)

    def answers(self, origins: np.ndarray) -> np.ndarray:
        """What it should predict then: [N, AHEAD], scaled."""
        change = self.ppm[weeks_ahead(origins)] - self.base(origins)
        return ((change - self.mean) / self.deviation).astype(np.float32)

    def to_ppm(self, origins: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """Predicted changes as ppm."""
        return self.base(origins) + predicted * self.deviation + self.mean

    def base(self, origins: np.ndarray) -> np.ndarray:
        """The levels a year before the weeks ahead, all known at the origins: [N, AHEAD]."""
        return year_before(self.ppm, weeks_ahead(origins), origins[:, None])


def weeks_ahead(origins: np.ndarray) -> np.ndarray:
    """The weeks that are forecast from each origin: [N, AHEAD]."""
    return origins[:, None] + np.arange(1, AHEAD + 1)


def training_origins(split: int) -> np.ndarray:
    """The origins whose window and answers lie before `split`."""
    return np.arange(FIRST + WINDOW - 1, split - AHEAD)


# --- the model ---


class Forecaster:
    """An LSTM over the window and a linear layer on its last state, as one graph with its training step."""

    def __init__(self, hidden: int, learning_rate: float = 3e-3, seed: int = 0) -> None:
        graph = recurra.Graph()
        rng = np.random.default_rng(seed)

        def weights(*shape: int, name: str) -> recurra.Tensor:
            reach = hidden**-0.5
            return graph.variable(rng.uniform(-reach, reach, shape).astype(np.float32), name)

        W, R = weights(4 * hidden, 1, name="W"), weights(4 * hidden, hidden, name="R")
        bias = graph.variable(np.zeros(4 * hidden, np.float32), "bias")
        # The head begins at zero: the first forecast is the average change, and training only has to improve on it.
        head = graph.variable(np.zeros((hidden, AHEAD), np.float32), "head")
        head_bias = graph.variable(np.zeros(AHEAD, np.float32), "head_bias")

        x = graph.placeholder([None, WINDOW], name="window")
        y = graph.placeholder([None, AHEAD], name="answer")
        source = ops.expand_dims(ops.transpose(x, (1, 0)), 2)  # [T, N, 1]: time comes first
        h = recurra.lstm(source, R, input_weight=W, bias=bias).h  # [T, N, H]
        prediction = h[-1] @ head + head_bias  # [N, AHEAD]
        loss = ops.square(prediction - y).mean()

        updates = adam(graph, loss, [W, R, bias, head, head_bias], learning_rate)
        self._step = graph.compile([x, y], loss, updates)
        self._loss = graph.compile([x, y], loss)
        self._predict = graph.compile([x], prediction)

    def step(self, x: np.ndarray, y: np.ndarray) -> float:
        """Train on one batch; its loss before the step."""
        return float(self._step.run([x, y]))

    def loss(self, x: np.ndarray, y: np.ndarray) -> float:
        """The mean square error. Always predicting the average change of the training years gives about 1."""
        return float(self._loss.run([x, y]))

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Windows [N, WINDOW] to changes [N, AHEAD], both scaled."""
        return np.asarray(self._predict.run([x]))


def adam(
    graph: recurra.Graph, loss: recurra.Tensor, variables: list[recurra.Tensor], learning_rate: float
) -> list[recurra.Operation]:
    """The assignments of a step of Adam."""
    beta1, beta2 = 0.9, 0.999
    power1, power2 = (graph.variable(1.0, name) for name in ("beta1_power", "beta2_power"))
    power1_now, power2_now = power1 * beta1, power2 * beta2
    updates = [graph.assign(power1, power1_now), graph.assign(power2, power2_now)]
    gradients = graph.gradients(loss, variables)
    for variable in variables:
        m, v = (graph.variable(np.zeros(variable.shape, np.float32), f"{variable.name}/{k}") for k in "mv")
        new = ops.adam(
            learning_rate, beta1, beta2, 1e-8, power1_now, power2_now, variable, m, v, None, gradients[variable]
        )
        updates += [graph.assign(old, value) for old, value in zip((variable, m, v), new, strict=True)]
    return updates


def train(
    model: Forecaster,
    x: np.ndarray,
    y: np.ndarray,
    held: tuple[np.ndarray, np.ndarray],
    epochs: int,
    batch: int,
    seed: int,
) -> list[tuple[float, float]]:
    """The loss of each epoch, in training and on the held-out years. These are only watched: they choose nothing."""
    rng = np.random.default_rng(seed)
    batches = max(1, len(x) // batch)
    progress = Progress(epochs, batches)
    history = []
    for _ in range(epochs):
        losses = []
        # A last batch that is smaller than the others would count its windows more; it waits for another epoch.
        for rows in np.array_split(rng.permutation(len(x))[: batches * batch], batches):
            losses.append(model.step(x[rows], y[rows]))
            progress.show(float(np.mean(losses)))
        history.append((float(np.mean(losses)), model.loss(*held)))
    return history


class Progress:
    """A bar that redraws itself on a terminal; elsewhere, about five lines in all."""

    WIDTH = 24

    def __init__(self, epochs: int, batches: int) -> None:
        self.epochs, self.batches, self.done = epochs, batches, 0
        self.is_terminal = sys.stdout.isatty()
        self.start, self.drawn = time.monotonic(), 0.0

    def show(self, loss: float) -> None:
        """Count one more batch; `loss` is the mean of this epoch so far."""
        self.done += 1
        total = self.epochs * self.batches
        epoch = -(-self.done // self.batches)
        is_epoch_done = self.done % self.batches == 0
        spent = time.monotonic() - self.start
        left = spent / self.done * (total - self.done)
        text = f"epoch {epoch:{len(str(self.epochs))}}/{self.epochs}  loss {loss:.3f}"
        if not self.is_terminal:
            if is_epoch_done and (epoch % max(1, self.epochs // 5) == 0 or epoch in (1, self.epochs)):
                print(f"{text}  {left:.0f} s left", flush=True)
        elif self.done == total or spent - self.drawn > 0.1:
            self.drawn = spent
            bar = ("=" * (self.WIDTH * self.done // total)).ljust(self.WIDTH)
            print(f"\r[{bar}] {text}  {left:3.0f} s left", end="\n" if self.done == total else "", flush=True)


# --- how good it is ---


def rules(series: Series, origins: np.ndarray) -> dict[str, np.ndarray]:
    """The forecasts [N, AHEAD] of three simple rules."""
    rise = np.array([series.change[o - YEAR + 1 : o + 1].mean() for o in origins])[:, None]
    return {
        "last value": np.repeat(series.ppm[origins][:, None], AHEAD, axis=1),
        "same week a year before": series.ppm[weeks_ahead(origins) - YEAR],
        "year before + last year's rise": series.base(origins) + rise,
    }


def errors_by_horizon(forecast: np.ndarray, truth: np.ndarray) -> list[float]:
    """Mean absolute errors in ppm, for each of HORIZONS and for all weeks. Weeks without a measurement do not count."""
    error = np.abs(forecast - truth)
    return [float(np.nanmean(error[:, a - 1 : b])) for a, b in (*HORIZONS, (1, AHEAD))]


def table(errors: dict[str, list[float]]) -> str:
    """The errors of all forecasters, and in words who is best."""
    head = [*(f"{a}-{b}" for a, b in HORIZONS), "all"]
    width = max(map(len, errors))
    lines = ["weeks ahead".ljust(width) + "".join(f"{h:>8}" for h in head)]
    lines += [name.ljust(width) + "".join(f"{e:8.2f}" for e in row) for name, row in errors.items()]
    lstm, *others = errors
    best = min(others, key=lambda name: errors[name][-1])
    own, its = errors[lstm][-1], errors[best][-1]
    if own < its:
        verdict = f"The {lstm} wins: over all weeks it is off by {own:.2f} ppm; the best rule ({best}) by {its:.2f}."
    else:
        verdict = f"The {lstm} does not win: over all weeks it is off by {own:.2f} ppm; {best} by only {its:.2f}."
    return "\n".join([*lines, verdict])


# --- the plots ---


def plot_forecast(path: Path, dates: np.ndarray, measured: np.ndarray, tests: list, future: tuple) -> None:
    """The record above; below, its end with two of the back-test's forecasts and the next year."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 8), layout="constrained")
    whole, end = figure.subplots(2, 1)
    weeks, forecast, low, high = future
    whole.plot(dates, measured, color="0.25", linewidth=0.8, label="measured")
    whole.plot(weeks, forecast, color="tab:red", label="forecast of the next year")
    whole.set_title("Weekly CO\N{SUBSCRIPT TWO} at Mauna Loa")
    recent = slice(-4 * YEAR, None)
    end.plot(dates[recent], measured[recent], ".", color="0.25", markersize=4, label="measured")
    for k, (test_weeks, test) in enumerate(tests):
        label = "back-test: a year ahead from each dotted line" if k == 0 else None
        end.plot(test_weeks, test, color="tab:blue", label=label)
        end.axvline(test_weeks[0], color="tab:blue", linewidth=0.8, linestyle=":")
    end.fill_between(weeks, low, high, color="tab:red", alpha=0.2, linewidth=0, label="80 % of the errors in training")
    end.plot(weeks, forecast, color="tab:red", label="forecast of the next year")
    end.set_title("The last four years and the next one")
    for axes in (whole, end):
        axes.set_ylabel("ppm")
        axes.grid(alpha=0.3)
        axes.margins(x=0.02)
        axes.legend(loc="upper left", frameon=False)
    figure.savefig(path, dpi=120)


def plot_loss(path: Path, history: list[tuple[float, float]]) -> None:
    """The loss by epoch."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    epochs = np.arange(1, len(history) + 1)
    for values, label in zip(zip(*history, strict=True), ("training", "held-out years (only watched)"), strict=True):
        axes.plot(epochs, values, marker="o", markersize=3, label=label)
    axes.axhline(1, color="0.5", linestyle=":", label="always the average change of the training years")
    axes.set(title="Training of the CO\N{SUBSCRIPT TWO} forecaster", xlabel="epoch", ylabel="mean square error, scaled")
    axes.set_ylim(bottom=0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


# --- all of it ---


def describe_gaps(dates: np.ndarray, ppm: np.ndarray, split: int) -> str:
    """How many weeks are missing, and what is done about it."""
    missing = np.isnan(ppm)
    return (
        f"{len(ppm)} weeks, {dates[0]} to {dates[-1]}.\nNot measured: {missing[:split].sum()} weeks of the training "
        f"years, bridged by straight lines, and {missing[split:].sum()} of the held-out years."
    )


def main(arguments: list[str] | None = None) -> int:
    """Train, test, forecast, write."""
    options = parse(arguments)
    dates, ppm = load()
    split = len(ppm) - HELD_OUT
    print(describe_gaps(dates, ppm, split))

    series = Series.prepare(ppm, split)
    origins, tests = training_origins(split), np.arange(split - 1, len(ppm) - AHEAD)
    x, y = series.windows(origins), series.answers(origins)
    held = series.windows(tests), series.answers(tests)
    print(f"Training on {len(x)} windows of {WINDOW} weeks, all before {dates[split]}.")
    model = Forecaster(options.hidden, seed=options.seed)
    history = train(model, x, y, held, options.epochs, min(options.batch, len(x)), options.seed)
    print(f"loss {history[0][0]:.3f} in epoch 1, {history[-1][0]:.3f} in epoch {len(history)}\n")

    predicted = series.to_ppm(tests, model.predict(held[0]))
    truth = ppm[weeks_ahead(tests)]  # as measured: a filled week is no truth
    errors = {
        name: errors_by_horizon(forecast, truth)
        for name, forecast in {"LSTM": predicted, **rules(series, tests)}.items()
    }
    print(f"Back-test: {len(tests)} forecasts of {AHEAD} weeks within {dates[split]} to {dates[-1]}.")
    print(f"Mean absolute error in ppm:\n{table(errors)}\n")

    # How far off the forecasts are in training, week by week ahead: tenth and ninetieth percentile.
    residuals = ppm[weeks_ahead(origins)] - series.to_ppm(origins, model.predict(x))
    below, above = np.nanpercentile(residuals, (10, 90), axis=0)
    inside = (truth >= predicted + below) & (truth <= predicted + above)
    share = inside[~np.isnan(truth)].mean()
    print(f"The band that holds 80 % of the errors in training holds {share:.0%} of those in the back-test.")

    last = np.array([len(ppm) - 1])
    forecast = series.to_ppm(last, model.predict(series.windows(last)))[0]
    weeks = dates[-1] + 7 * np.arange(1, AHEAD + 1)
    future = (weeks, forecast, forecast + below, forecast + above)
    # The first and the last of the back-test's forecasts: together they cover the held-out years once.
    shown = [(dates[weeks_ahead(tests)[k]], predicted[k]) for k in (0, -1)]
    write(options.out, dates, ppm, history, shown, future)
    return 0


def write(out: Path, dates: np.ndarray, ppm: np.ndarray, history: list, shown: list, future: tuple) -> None:
    """The forecast as a table and, with matplotlib, as plots."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / "forecast.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("date", "forecast", "low", "high"))
        rows.writerows((week, *(f"{v:.2f}" for v in values)) for week, *values in zip(*future, strict=True))
    try:
        plot_forecast(out / "forecast.png", dates, ppm, shown, future)
        plot_loss(out / "loss.png", history)
    except ImportError as error:
        print(f"Wrote {out / 'forecast.csv'}. The plots need matplotlib: pip install 'recurra[plot]' ({error})")
    else:
        print(f"Wrote {out / 'forecast.csv'}, {out / 'forecast.png'} and {out / 'loss.png'}.")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The options."""

    def count(text: str) -> int:
        if int(text) < 1:
            raise argparse.ArgumentTypeError(f"must be 1 or more, got {text}")
        return int(text)

    parser = argparse.ArgumentParser(
        description="Forecast CO2 at Mauna Loa with an LSTM.", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--epochs", type=count, default=12, help="passes over the training windows")
    parser.add_argument("--hidden", type=count, default=32, help="size of the LSTM's state")
    parser.add_argument("--batch", type=count, default=64, help="windows in one training step")
    parser.add_argument("--seed", type=int, default=0, help="of the initial weights and the order of the windows")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="directory for what is written")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nStopped.")
        sys.exit(130)
