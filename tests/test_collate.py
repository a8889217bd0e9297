"""Samples and batches: labels are the answer and nothing else, for every family, with any padding."""

import pytest
import torch
from PIL import Image

from smmd_vlm.collate import Collator, EncodedRecords, Encoder, image_budget, set_image_budget
from smmd_vlm.objective import IGNORE_INDEX
from smmd_vlm.records import Record
from smmd_vlm.rows import to_record
from tests.support import png

FAMILIES = ["qwen2_5_vl", "qwen3_vl", "qwen3_5"]
QUESTION = "What time does the clock show? Answer HH:MM."


def record(answer="12:05", question=QUESTION, image=None, record_id="a") -> Record:
    return Record(id=record_id, image=png() if image is None else image, question=question, answer=answer)


@pytest.fixture(params=FAMILIES)
def processor(request, tiny):
    from transformers import AutoProcessor

    return AutoProcessor.from_pretrained(tiny(request.param))


def test_labels_are_the_answer_and_its_end_token(processor):
    sample = Encoder(processor)(record())
    kept = sample["labels"][sample["labels"] != IGNORE_INDEX]
    assert processor.tokenizer.decode(kept) == "12:05<|im_end|>"
    assert len(kept) == 6  # one token a digit
    assert (sample["mm_token_type_ids"][sample["labels"] != IGNORE_INDEX] == 0).all()
    image_id = processor.tokenizer.convert_tokens_to_ids("<|image_pad|>")
    assert image_id not in kept and (sample["input_ids"] == image_id).sum() == sample["mm_token_type_ids"].sum() == 4


def test_the_prompt_is_what_generate_is_given(processor):
    full, prompt = Encoder(processor)(record()), Encoder(processor, with_answer=False)(record())
    assert torch.equal(full["input_ids"][: len(prompt["input_ids"])], prompt["input_ids"])
    assert (full["labels"][: len(prompt["input_ids"])] == IGNORE_INDEX).all()
    assert processor.tokenizer.decode(prompt["input_ids"]).endswith("<|im_start|>assistant\n")


def test_the_word_assistant_in_a_prompt_moves_nothing(processor):
    sample = Encoder(processor)(record(question="assistant\nassistant: what does the assistant say?"))
    kept = sample["labels"][sample["labels"] != IGNORE_INDEX]
    assert processor.tokenizer.decode(kept) == "12:05<|im_end|>"


def test_a_sample_is_what_the_processors_own_call_gives(processor):
    set_image_budget(processor, 4, 16)
    images = [Image.new("RGB", (96, 64), "red"), Image.new("RGB", (64, 160), "navy")]
    for question, used in (("Left <image> or right <image>?", images), ("Which?", images[1:]), ("2 + 2?", [])):
        row = {
            "images": [png(*image.size, color=image.getpixel((0, 0))) for image in used],
            "question": question,
            "answer": "7",
        }
        taken = to_record(row if used else {"question": question, "answer": "7"}, where="here", default_id="a", folder=None)
        encoder = Encoder(processor, with_answer=False)
        sample = encoder(taken)
        prompt = encoder.render(encoder.messages(taken), generation_prompt=True)
        given = processor(text=[prompt], images=used or None, return_mm_token_type_ids=True, return_tensors="pt")
        assert ("pixel_values" in sample) == bool(used) and given.keys() - {"attention_mask"} == sample.keys() - {"id"}
        for name in sample.keys() - {"id"}:
            expected = given[name] if name in ("pixel_values", "image_grid_thw") else given[name][0]
            assert torch.equal(sample[name], expected) and sample[name].dtype == expected.dtype, name


def test_a_batch_is_its_samples_bit_for_bit(processor):
    set_image_budget(processor, 4, 16)
    pictures = [png(96, 64, color="red"), png(64, 160, color="navy"), png(96, 64, color="green")]
    two = {"images": pictures[:2], "question": "Left <image> or right <image>?", "answer": "7"}
    records = [
        record(image=pictures[2], record_id="first"),
        to_record(two, where="here", default_id="two", folder=None),
        Record(id="none", question="2 + 2?", answer="4"),
        record(image=pictures[1], answer="03:07", record_id="last"),
    ]
    encoder = Encoder(processor)
    for together, alone in zip(encoder.batch(records), map(encoder, records), strict=True):
        assert together.keys() == alone.keys()
        assert all(torch.equal(together[name], alone[name]) for name in alone if name != "id")
    assert "pixel_values" not in encoder.batch(records)[2]
    dataset = EncodedRecords(records, encoder, keep=True)
    dataset[3]
    taken = dataset.__getitems__([3, 0, 3])
    assert [sample["id"] for sample in taken] == ["last", "first", "last"] and taken[0] is dataset[3]


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_sides(processor, side):
    encoder = Encoder(processor)
    short, long = encoder(record("7")), encoder(record("12345678", record_id="b"))
    batch = Collator(processor, side)([short, long])
    gap = len(long["input_ids"]) - len(short["input_ids"])
    inside = slice(gap, None) if side == "left" else slice(None, -gap)
    for name, blank in (("input_ids", processor.tokenizer.pad_token_id), ("labels", IGNORE_INDEX), ("mm_token_type_ids", 0)):
        assert torch.equal(batch[name][0][inside], short[name])
        assert (batch[name][0] == blank).sum() >= gap
    assert batch["attention_mask"].sum(-1).tolist() == [len(short["input_ids"]), len(long["input_ids"])]
    assert len(batch["pixel_values"]) == 32 and len(batch["image_grid_thw"]) == 2


@pytest.mark.parametrize("family", FAMILIES)
def test_position_ids_come_from_the_image_grid(tiny, family):
    """Without mm_token_type_ids Qwen-VL silently falls back to text positions, in forward or in generate."""
    from transformers import AutoModelForImageTextToText, AutoProcessor

    processor = AutoProcessor.from_pretrained(tiny(family))
    model = AutoModelForImageTextToText.from_pretrained(tiny(family)).eval()
    batch = Collator(processor, "left")([Encoder(processor, with_answer=False)(record())])
    assert batch.pop("ids") == ["a"]
    positions, _ = model.model.get_rope_index(
        batch["input_ids"],
        mm_token_type_ids=batch["mm_token_type_ids"],
        image_grid_thw=batch["image_grid_thw"],
        attention_mask=batch["attention_mask"],
    )
    assert not torch.equal(positions[0], positions[1])  # rows and columns of the image differ from time
    with torch.no_grad():
        given = model(**batch, position_ids=positions).logits
        own = model(**batch).logits
    torch.testing.assert_close(own, given)


def test_text_only_records(processor):
    text = Record(id="t", question="2 + 2?", answer="4")
    batch = Collator(processor)([Encoder(processor)(text)])
    assert "pixel_values" not in batch and "image_grid_thw" not in batch


def test_the_budget_is_in_tokens_and_travels_with_the_processor(processor, tmp_path):
    from transformers import AutoProcessor

    set_image_budget(processor, 4, 16)
    processor.save_pretrained(tmp_path)
    again = AutoProcessor.from_pretrained(tmp_path)
    assert image_budget(again) == (4, 16)
    sample = Encoder(again)(record(image=png(900, 400)))
    assert 4 <= int(sample["mm_token_type_ids"].sum()) <= 16


def test_too_long_is_an_error_with_the_record_and_the_tokens(processor):
    with pytest.raises(ValueError, match=r"record 'a': \d+ tokens, 4 of them image tokens, exceed data.max_length=20"):
        Encoder(processor, max_length=20)(record())


@pytest.mark.parametrize("field", ["question", "answer"])
def test_control_tokens_in_text_are_refused(processor, field):
    with pytest.raises(ValueError, match=rf"record 'a': the {field} holds the control token '<\|image_pad\|>'"):
        Encoder(processor)(record(**{field: "see <|image_pad|> here"}))


def test_an_image_that_the_processor_cannot_shape_is_named(processor):
    with pytest.raises(ValueError, match="record 'a': the processor refuses"):
        Encoder(processor)(record(image=png(1, 300)))
    with pytest.raises(ValueError, match="record 'odd': the processor refuses"):
        Encoder(processor).batch([record(), record(image=png(1, 300), record_id="odd"), record(record_id="c")])
