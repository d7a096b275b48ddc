"""The language model with variational dropout: it learns, its masks last a sequence, and only while it trains."""

from __future__ import annotations

import math
import re

import pytest
import torch

from examples import programs

program = programs.load("torch/variational_language_model")
TEXT = program.load_text()


def model(dropout: float = 0.0, recurrent_dropout: float = 0.0) -> torch.nn.Module:
    torch.manual_seed(0)
    return program.LanguageModel(8, dropout, recurrent_dropout)


# --- what a person sees ---


def test_loss_falls_below_the_unigram_entropy(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--steps", "150", "--hidden", "64"]) == 0
    text = capsys.readouterr().out
    first, last = (float(re.search(rf"^step +{k}/150  loss (\d\.\d+)", text, re.MULTILINE)[1]) for k in (1, 150))
    found = re.search(r"^held-out text: loss (\d\.\d+), unigram entropy (\d\.\d+)$", text, re.MULTILINE)
    held_out, entropy = map(float, found.groups())
    assert first == pytest.approx(math.log(program.SYMBOLS), abs=0.5)
    assert 3.0 < entropy < 3.5  # English with spaces and capitals
    assert last < entropy - 0.5
    assert held_out < entropy - 0.5
    assert re.fullmatch(r"The [ -~]{60}", text.splitlines()[-1])


def test_same_seed_repeats_and_another_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    def run(seed: int) -> str:
        assert program.main(["--steps", "3", "--hidden", "8", "--batch", "4", "--seq", "16", "--seed", str(seed)]) == 0
        return re.sub(r" +\d+ s$", "", capsys.readouterr().out, flags=re.MULTILINE)

    assert run(5) == run(5)
    assert run(5) != run(6)


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--steps", "0", "must be 1 or more, got 0"),
        ("--dropout", "1", "must lie in [0, 1), got 1"),
        ("--recurrent-dropout", "-0.1", "must lie in [0, 1), got -0.1"),
    ],
)
def test_wrong_options_are_refused(option: str, value: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        program.main([f"{option}={value}"])
    assert f"argument {option}: {says}" in capsys.readouterr().err


# --- the masks ---


def test_sequence_dropout_drops_the_same_elements_at_all_steps() -> None:
    torch.manual_seed(0)
    x = torch.ones(7, 5, 40)
    y = program.sequence_dropout(x, 0.25, True)
    assert torch.equal(y, y[:1].expand_as(y))
    torch.testing.assert_close(y[0].unique(), torch.tensor([0.0, 4 / 3]))
    assert 0.15 < float((y[0] == 0).float().mean()) < 0.35
    assert (y[0, 0] != y[0, 1]).any()
    assert torch.equal(program.sequence_dropout(x, 0.25, False), x)


@pytest.mark.parametrize("rates", [{"dropout": 0.5}, {"recurrent_dropout": 0.5}], ids=str)
def test_each_dropout_acts_in_training_alone(rates: dict[str, float]) -> None:
    characters = TEXT[:60].view(12, 5)
    plain, dropping = model().eval(), model(**rates)
    assert not torch.equal(dropping(characters)[0], dropping(characters)[0])
    assert torch.equal(dropping.eval()(characters)[0], plain(characters)[0])


def test_recurrent_dropout_spares_the_first_step() -> None:
    """It acts on the way from one step to the next: with no state before it, the first step sees nothing of it."""
    characters = TEXT[:60].view(12, 5)
    plain, dropping = model()(characters)[0], model(recurrent_dropout=0.5)(characters)[0]
    torch.testing.assert_close(dropping[0], plain[0])
    assert not torch.allclose(dropping[1], plain[1])


# --- the text ---


def test_pieces_go_on_where_the_last_one_ended() -> None:
    rows = program.rows_of(torch.arange(23), 2)  # [11, 2]
    assert rows[:, 1].tolist() == list(range(11, 22))
    characters, truth = (torch.cat(parts) for parts in zip(*program.pieces(rows, 3), strict=True))
    assert torch.equal(characters, rows[:9])
    assert torch.equal(truth, rows[1:10])


def test_unigram_entropy_is_that_of_the_shares() -> None:
    text = torch.tensor([65, 65, 66, 67])
    assert program.unigram_entropy(text) == pytest.approx(1.5 * math.log(2))


def test_text_is_prose() -> None:
    text = bytes(TEXT.tolist()).decode("ascii")
    assert len(text) > 100_000
    assert " class definition" in text
    assert "  " not in text
    assert "\n" not in text
