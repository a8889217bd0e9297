"""NumericVocab: which strings are numbers in each mode, on plain maps and on the real Qwen tokenizer."""

import pytest

from smmd_vlm import NumericVocab

DIGITS = {str(d): 100 + d for d in range(10)}


def test_digits_are_sorted_by_value_whatever_their_ids():
    mapping = {str(d): 50 - d for d in range(10)}
    vocab = NumericVocab.from_mapping(mapping)
    assert vocab.values.tolist() == list(range(10))
    assert vocab.ids.tolist() == [50 - d for d in range(10)]
    assert vocab.width == 51


@pytest.mark.parametrize(
    ("text", "modes", "why"),
    [
        ("12", {"integers", "floats"}, "one token for a whole number"),
        ("05", {"integers", "floats"}, "leading zeros are the minutes of a clock"),
        (" 7", {"floats"}, "at most one leading space"),
        ("  7", set(), "two spaces"),
        ("-3", {"floats"}, "a sign"),
        ("3.14", {"floats"}, "a decimal point"),
        ("1e5", {"floats"}, "an exponent"),
        ("1e999", set(), "float() makes inf of it"),
        ("inf", set(), "float() takes it, a kernel cannot"),
        ("nan", set(), "likewise"),
        ("1_0", set(), "Python's float() reads 10"),
        ("\uff15", set(), "full-width digits are another script"),
        ("\u00bd", set(), "a fraction sign"),
        ("\u0663", set(), "an Arabic-Indic digit"),
        ("#5", set(), "a word piece"),
    ],
)
def test_what_is_a_number(text, modes, why):
    for mode in ("digits", "integers", "floats"):
        assert (text in NumericVocab.from_mapping({**DIGITS, text: 1}, mode).tokens) == (mode in modes), why


def test_leading_zeros_share_a_value_and_keep_their_own_column():
    vocab = NumericVocab.from_mapping({**DIGITS, "05": 1, "005": 2}, "integers")
    assert [vocab.values[vocab.tokens.index(text)].item() for text in ("5", "05", "005")] == [5, 5, 5]


def test_a_missing_digit_is_named():
    with pytest.raises(ValueError, match="7, 9 missing"):
        NumericVocab.from_mapping({text: i for text, i in DIGITS.items() if text not in "79"})


def test_one_id_for_many_numbers_is_refused():
    with pytest.raises(ValueError, match="unknown-token id"):
        NumericVocab.from_mapping({**DIGITS, "3": 104})


def test_unknown_mode():
    with pytest.raises(ValueError, match="mode must be one of digits, integers, floats"):
        NumericVocab.from_mapping(DIGITS, "numbers")


def test_the_real_qwen_tokenizer_has_ten_digits(qwen_tokenizer_folder):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(qwen_tokenizer_folder)
    vocab = NumericVocab.from_tokenizer(tokenizer)
    assert vocab.tokens == tuple("0123456789")
    assert vocab.ids.tolist() == [tokenizer.convert_tokens_to_ids(t) for t in "0123456789"]
    # Qwen writes every digit by itself, so the other modes find nothing more
    assert len(NumericVocab.from_tokenizer(tokenizer, "integers")) == 10


def test_added_digits_count_and_special_ones_do_not():
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    base = Tokenizer(models.WordLevel({"[UNK]": 0, **{str(d): d + 1 for d in range(9)}}, unk_token="[UNK]"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=base, unk_token="[UNK]")
    with pytest.raises(ValueError, match="9 missing"):
        NumericVocab.from_tokenizer(tokenizer)
    tokenizer.add_tokens(["9"])  # its id lies past the base vocabulary
    assert NumericVocab.from_tokenizer(tokenizer).width == len(tokenizer)


# ---------------------------------------------------------------- kinds of tokenizers, and the verb that shows them


def hand_built(words: list[str], pre_tokenizers):
    """A tokenizer that knows `words` and splits as told; anything else is [UNK]."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    base = Tokenizer(models.WordLevel({text: i for i, text in enumerate(["[UNK]", *words])}, unk_token="[UNK]"))
    base.pre_tokenizer = pre_tokenizers
    return PreTrainedTokenizerFast(tokenizer_object=base, unk_token="[UNK]")


@pytest.fixture
def three_digits():
    """Llama-3, DeepSeek and GPT: all 1,110 strings of one to three digits, split from the left; byte-level keys."""
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split

    numbers = [f"{value:0{width}d}" for width in (1, 2, 3) for value in range(10**width)]
    split = Split(Regex("[0-9]{1,3}|[^0-9]"), "isolated")
    return hand_built(
        [*numbers, ".", ":", "-", ",", "\u0120", "\u0120the"], Sequence([split, ByteLevel(False, use_regex=False)])
    )


@pytest.fixture
def sentencepiece():
    """Llama-2 and Mistral: single digits, and a piece for the space that stands before every text."""
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import Metaspace, Sequence, Split

    words = [*map(str, range(10)), ".", ":", "-", ",", "\u2581", "\u25815", "<0x35>"]
    return hand_built(words, Sequence([Metaspace(), Split(Regex("."), "isolated")]))


def test_one_to_three_digit_tokens(three_digits):
    vocab = NumericVocab.from_tokenizer(three_digits, "integers")
    assert len(vocab) == 1110 and set(vocab.values.tolist()) == set(map(float, range(1000)))
    assert sum(len(token) > 1 and token[0] == "0" for token in vocab.tokens) == 110  # "00" to "099": the minutes, fractions
    assert vocab.digits.tolist() == [len(token) for token in vocab.tokens]
    assert vocab.point_id == three_digits.convert_tokens_to_ids(".")
    assert len(NumericVocab.from_tokenizer(three_digits)) == 10


def test_sentencepiece_digits_are_looked_up_not_encoded(sentencepiece):
    assert sentencepiece("5", add_special_tokens=False)["input_ids"] != [sentencepiece.convert_tokens_to_ids("5")]
    vocab = NumericVocab.from_tokenizer(sentencepiece)
    assert vocab.tokens == tuple("0123456789")
    # "_5" is the number " 5" where leading spaces are allowed; a byte piece never is a digit
    assert NumericVocab.from_tokenizer(sentencepiece, "floats").tokens.count(" 5") == 1
    assert len(NumericVocab.from_tokenizer(sentencepiece, "integers")) == 10


def test_floats_have_no_places():
    vocab = NumericVocab.from_mapping({**DIGITS, " 7": 1, "3.14": 2}, "floats")
    with pytest.raises(ValueError, match=r"digits alone, got '3.14', ' 7' among 12|digits alone, got ' 7'"):
        _ = vocab.digits


def test_the_report_on_digits(qwen_tokenizer_folder):
    from transformers import AutoTokenizer

    from smmd_vlm.vocabreport import report

    text = report(AutoTokenizer.from_pretrained(qwen_tokenizer_folder))
    assert "* digits    10 number tokens" in text and "1 | 2 | : | 0 | 5" in text and "3 | . | 1 | 4" in text
    assert "199 read as 200" in text and "no numeric loss reaches" not in text


def test_the_report_warns_where_token_and_place_value_part(three_digits):
    from smmd_vlm.vocabreport import report

    text = report(three_digits, "integers")
    assert "1110 number tokens (integers)" in text and "123 | 456 | 7" in text and "12 | : | 05" in text
    assert "1100 tokens hold several digits (1234567 is 123|456|7)" in text
    assert "110 of them begin with 0" in text and "sigmas: span" in text
    # in mode digits the same tokenizer would leave most numbers without a loss
    assert "'12', '05' of '12:05' are no number token in mode digits" in report(three_digits)
    assert "use loss.vocab: integers" in report(three_digits)


def test_the_verb(sentencepiece, tmp_path, capsys):
    from smmd_vlm.cli import main

    sentencepiece.save_pretrained(tmp_path / "model")
    assert main(["vocab", "--model", str(tmp_path / "model")]) == 0
    assert "' 123'      " in capsys.readouterr().out
    assert main(["vocab", "--model", str(tmp_path / "none")]) == 2
    assert "expected a model folder or hub name with a tokenizer" in capsys.readouterr().err
