"""The language model of the examples: equal to torch's, and trained, repeated, saved and restored."""

from __future__ import annotations

from pathlib import Path
import subprocess

import numpy as np
from peers import mapping
import pytest
import torch

from examples import programs
import recurra

program = programs.load("language_model")
TEXT = program.load_text()
N, T, E, H = 5, 17, 7, 6
LEARNING_RATE = 3e-3


class TorchModel(torch.nn.Module):
    """The same model in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(program.SYMBOLS, E)
        self.lstm = torch.nn.LSTM(E, H, num_layers=program.LAYERS, bidirectional=True, batch_first=True)
        self.head = torch.nn.Linear(2 * H, program.SYMBOLS)
        # Torch adds two biases, and training both would move their sum twice as fast as one bias moves.
        for name, parameter in self.lstm.named_parameters():
            parameter.requires_grad_(not name.startswith("bias_hh"))

    def loss(self, masked: np.ndarray, truth: np.ndarray, weight: np.ndarray) -> torch.Tensor:
        logits = self.head(self.lstm(self.embedding(torch.from_numpy(masked).long()))[0])
        labels = torch.from_numpy(np.where(weight > 0, truth, -100)).long()
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)

    def weights(self) -> dict[str, np.ndarray]:
        """What the example calls its variables."""
        found = {"embedding": self.embedding.weight, "head/W": self.head.weight.T, "head/b": self.head.bias}
        names = {"input_weight": "W", "recurrent_weight": "R", "bias": "b"}
        for layer in range(program.LAYERS):
            for name, value in mapping.from_torch(self.lstm, layer).items():
                found[f"lstm{layer}/{names[name]}"] = value
        return {name: value.detach().numpy().copy() for name, value in found.items()}


def small_model(dropout: float = 0.0, seed: int = 0) -> object:
    return program.build(program.initial_weights(H, E, 3), dropout=dropout, learning_rate=LEARNING_RATE, seed=seed)


def feed(seed: int = 1) -> object:
    return program.batches(TEXT, N, T, seed)


def fed(model: object, batch: tuple[np.ndarray, ...]) -> dict[recurra.Tensor, np.ndarray]:
    return dict(zip((model.masked, model.truth, model.weight), batch, strict=True))


def losses_of_torch(model: TorchModel, steps: int) -> list[float]:
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], LEARNING_RATE)
    batches, losses = feed(), []
    for _ in range(steps):
        loss = model.loss(*next(batches))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_first_twenty_losses_equal_those_of_torch() -> None:
    torch.manual_seed(0)
    other = TorchModel()
    model = program.build(other.weights(), dropout=0.0, learning_rate=LEARNING_RATE)
    losses, expected = program.train(model, feed(), 20), losses_of_torch(other, 20)
    assert np.ptp(expected) > 0.1  # there is something to agree on
    np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-5)
    state = model.graph.state_dict()
    for name, weight in other.weights().items():
        np.testing.assert_allclose(state[name], weight, rtol=0, atol=1e-5, err_msg=name)


def test_training_with_dropout_lowers_the_loss() -> None:
    model = program.build(program.initial_weights(16, 16, 3), dropout=0.2, learning_rate=1e-2)
    held = fed(model, next(program.batches(TEXT, 32, 32, 99)))
    before = float(model.graph.run(held, model.loss))
    losses = program.train(model, program.batches(TEXT, 16, 32, 1), 40)
    assert np.isfinite(losses).all()
    assert before > 3.8  # about log(SYMBOLS): nothing is known yet
    assert float(model.graph.run(held, model.loss)) < before - 0.5


def test_same_seed_repeats_and_another_seed_drops_others() -> None:
    first, again, other = (program.train(small_model(dropout=0.5, seed=s), feed(), 4) for s in (7, 7, 8))
    assert first == again
    assert first != other


def test_evaluation_has_no_dropout() -> None:
    model, plain = small_model(dropout=0.5), small_model()
    batch = next(feed())
    losses = [float(model.graph.run(fed(model, batch), model.loss)) for _ in range(2)]
    assert losses == [float(plain.graph.run(fed(plain, batch), plain.loss))] * 2
    assert float(model.graph.run(fed(model, batch), model.training_loss)) != losses[0]


def test_saved_model_gives_the_same_numbers_bit_for_bit(tmp_path: Path) -> None:
    model = small_model(dropout=0.5)
    program.train(model, feed(), 3)
    executable = model.graph.compile([model.masked], model.logits)
    executable.save(tmp_path / "model.recurra")
    loaded = recurra.Executable.load(tmp_path / "model.recurra")
    # Other numbers of rows and characters than in training: both sizes are known at run time only.
    for rows, steps in ((N, T), (1, 40)):
        masked, _, _ = next(program.batches(TEXT, rows, steps, 5))
        logits = executable.run([masked])
        assert logits.shape == (rows, steps, program.SYMBOLS)
        np.testing.assert_array_equal(loaded.run([masked]), logits, strict=True)


def test_saved_training_step_goes_on_as_the_graph_does(tmp_path: Path) -> None:
    model = small_model()
    batches = feed()
    program.train(model, batches, 3)
    inputs = [model.masked, model.truth, model.weight]
    model.graph.compile(inputs, model.training_loss, model.train).save(tmp_path / "step.recurra")
    loaded = recurra.Executable.load(tmp_path / "step.recurra")
    rest = [next(batches) for _ in range(4)]
    assert [float(loaded.run(list(batch))) for batch in rest] == program.train(model, iter(rest), 4)


def test_a_loaded_model_with_other_numbers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, other = small_model(), small_model()
    program.train(other, feed(), 1)
    wrong = other.graph.compile([other.masked], other.logits)
    monkeypatch.setattr(recurra.Executable, "load", staticmethod(lambda path: wrong))
    with pytest.raises(SystemExit, match="computes other numbers than the one that was saved"):
        program.save_and_compare(model, tmp_path / "model.recurra", next(feed())[0])


def test_state_dict_restores_weights_and_optimizer() -> None:
    model, batches = small_model(), feed()
    program.train(model, batches, 3)
    state, rest = model.graph.state_dict(), [next(batches) for _ in range(3)]
    assert {"embedding", "lstm2/R", "head/b", "adam/beta1_power", "adam/lstm0/W/m", "adam/lstm0/W/v"} <= state.keys()
    went_on = program.train(model, iter(rest), 3)

    restored = program.build(program.initial_weights(H, E, 4), dropout=0.0, learning_rate=LEARNING_RATE)
    restored.graph.load_state_dict(state)
    for name, value in restored.graph.state_dict().items():
        np.testing.assert_array_equal(value, state[name], strict=True, err_msg=name)
    assert program.train(restored, iter(rest), 3) == went_on
    # The state was a copy: going on did not change it, and it brings the first model back too.
    model.graph.load_state_dict(state)
    assert program.train(model, iter(rest), 3) == went_on


def test_only_masked_characters_count_and_the_model_does_not_see_them() -> None:
    masked, truth, weight = next(feed())
    assert (masked[weight > 0] == program.MASK).all()
    assert (masked == truth)[weight == 0].all()
    assert (weight.sum(axis=1) > 0).all()
    model = small_model()

    def loss(truth: np.ndarray) -> float:
        return float(model.graph.run(fed(model, (masked, truth, weight)), model.loss))

    changed = np.where(truth == 0, 1, 0).astype(np.int32)
    assert loss(np.where(weight > 0, truth, changed)) == loss(truth)
    assert loss(np.where(weight > 0, changed, truth)) != loss(truth)


def test_text_is_prose_in_a_known_alphabet() -> None:
    assert len(TEXT) > 100_000
    assert TEXT.dtype == np.int32
    assert TEXT.min() >= 0
    assert TEXT.max() <= program.OTHER
    assert " class definition" in program.to_string(TEXT)
    assert (TEXT == program.OTHER).mean() < 0.02


def test_command_trains_fills_in_and_saves(tmp_path: Path) -> None:
    path = tmp_path / "model.recurra"
    sizes = ("--steps", 12, "--hidden", 8, "--batch", 4, "--seq", 16)
    text = programs.run("language_model", *sizes, "--dropout", 0.1, "--seed", 3, "--save", path)
    progress = [line for line in text.splitlines() if line.startswith("step")]
    assert 2 <= len(progress) <= 13
    assert "step 12/12  loss" in progress[-1]
    assert "of the masked characters right; the loaded model agrees" in text
    filled, truth = (line[10:] for line in text.splitlines() if line.startswith(("  filled", "  truth")))
    assert len(filled) == len(truth) == 16
    logits = recurra.Executable.load(path).run([TEXT[None, :9]])
    assert logits.shape == (1, 9, program.SYMBOLS)
    again = programs.run("language_model", *sizes, "--dropout", 0.1, "--seed", 3)
    assert again.splitlines()[-4:] == [line for line in text.splitlines() if not line.startswith("Saved")][-4:]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--dropout", 1.5), "argument --dropout: must lie in [0, 1], got 1.5"),
        (("--steps", 0), "argument --steps: must be 1 or more, got 0"),
        (("--save", "no/such/folder/model"), "argument --save: no/such/folder is not a directory"),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, tuple) else "",
)
def test_wrong_options_are_refused_before_training(arguments: tuple[object, ...], says: str) -> None:
    done = subprocess.run(programs.command("language_model", *arguments), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert says in done.stderr.replace(str(Path("no/such/folder")), "no/such/folder")
    assert "step" not in done.stdout
