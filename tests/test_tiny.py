"""The embedded default: an ordinary model folder with a lossless tokenizer, the same every time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smmd_vlm.cli import main
from smmd_vlm.tiny import FAMILIES, compact_tokenizer
from smmd_vlm.vocab import NumericVocab

TOKENIZER = compact_tokenizer()


@pytest.mark.parametrize(
    ("text", "pieces"),
    [("12:05", ["1", "2", ":", "0", "5"]), ("-3.14", ["-", "3", ".", "1", "4"]), ("1,024", ["1", ",", "0", "2", "4"])],
)
def test_one_token_a_digit(text, pieces):
    assert TOKENIZER.tokenize(text) == pieces


@settings(deadline=None)
@given(st.text())
def test_any_text_comes_back(text):
    ids = TOKENIZER(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    assert TOKENIZER.decode(ids, clean_up_tokenization_spaces=False) == text


def test_whole_number_tokens():
    tokenizer = compact_tokenizer(2)
    assert tokenizer.tokenize("12:05") == ["12", ":", "05"]
    vocab = NumericVocab.from_tokenizer(tokenizer, "integers")
    assert len(vocab) == 110 and {f"{number:02d}" for number in range(100)} <= set(vocab.tokens)


def test_the_prompt_is_short():
    from smmd_vlm.tiny import build_processor

    processor = build_processor(TOKENIZER)
    messages = [
        {
            "role": "user",
            "content": [{"type": "image"}, {"type": "text", "text": "What time does the clock show? Answer HH:MM."}],
        }
    ]
    text = processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert len(TOKENIZER(text)["input_ids"]) <= 24


def test_the_same_folder_every_time(tmp_path):
    for name in ("a", "b"):
        assert main(["tiny", "--out", str(tmp_path / name), "--hidden", "32", "--layers", "1"]) == 0
    files = {path.name for path in (tmp_path / "a").iterdir()}
    assert {"model.safetensors", "tokenizer.json", "processor_config.json", "chat_template.jinja", "config.json"} <= files
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files)


def test_another_seed_is_another_model_with_the_same_tokenizer(tmp_path):
    for seed in ("0", "1"):
        assert main(["tiny", "--out", str(tmp_path / seed), "--hidden", "32", "--layers", "1", "--seed", seed]) == 0
    assert (tmp_path / "0" / "model.safetensors").read_bytes() != (tmp_path / "1" / "model.safetensors").read_bytes()
    assert (tmp_path / "0" / "tokenizer.json").read_bytes() == (tmp_path / "1" / "tokenizer.json").read_bytes()


def test_a_folder_in_use_and_an_unknown_family_are_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    assert main(["tiny", "--out", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert main(["tiny", "--out", str(tmp_path / "x"), "--family", "llava"]) == 2
    assert f"family must be one of {', '.join(FAMILIES)}" in capsys.readouterr().err
