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
