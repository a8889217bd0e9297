"""Hidden states x the head's rows: the logits path's values and gradients, for every way a head makes logits."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from smmd_vlm import NumericObjective, NumericVocab
from smmd_vlm.adapters.hidden import Head, numeric_term
from smmd_vlm.losses import LOSSES
from smmd_vlm.objective import supervised, targets

VOCAB = NumericVocab.from_mapping({**{str(d): 3 + 2 * d for d in range(10)}, ".": 30})
V, D = 40, 16


def batch(seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(3, 8, D, generator=generator)
    labels = torch.randint(0, V, (3, 8), generator=generator)
    labels[:, ::3] = torch.tensor(VOCAB.token_ids)[torch.randint(0, 10, (3, 3), generator=generator)]
    labels[:, 0] = -100
    return hidden, labels


def head_of(bias: bool = False, seed: int = 1) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(D, V, bias=bias)


def full_logits(head: Head, hidden: torch.Tensor) -> torch.Tensor:
    """What a model's own forward does."""
    logits = F.linear(hidden, head.module.weight, head.module.bias) * head.scale
    return logits if head.softcap is None else head.softcap * torch.tanh(logits / head.softcap)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(
    "make", [lambda: Head(head_of()), lambda: Head(head_of(bias=True), scale=0.25, softcap=3.0)], ids=["plain", "all"]
)
def test_equals_the_logits_path_in_value_and_gradient(name, make):
    hidden, labels = batch()
    objective, head = NumericObjective(VOCAB, name, 1.0), make()
    rows, columns = hidden.clone().requires_grad_(), hidden.clone().requires_grad_()

    logits = full_logits(head, rows)
    by_logits = objective(logits, labels)
    wanted = torch.autograd.grad(by_logits.numeric, [rows, *head.module.parameters()])

    log_probs = None
    if objective.needs & {"log_z"}:
        following = labels[:, 1:].clamp(min=0)
        log_probs = full_logits(head, columns)[:, :-1].log_softmax(-1).gather(-1, following[..., None]).squeeze(-1)
    term = numeric_term(objective, head, columns, labels, log_probs=log_probs)
    got = torch.autograd.grad(term.loss, [columns, *head.module.parameters()])

    assert term.num_numbers == by_logits.num_numbers > 0
    torch.testing.assert_close(term.loss, by_logits.numeric, rtol=1e-6, atol=1e-6)
    for mine, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(mine.to_dense(), theirs, rtol=1e-5, atol=1e-6)


def test_the_gradient_adds_to_cross_entropys_own():
    hidden, labels = batch(2)
    objective, head = NumericObjective(VOCAB, weight=0.5), Head(head_of())
    objective(full_logits(head, hidden), labels).loss.backward()
    wanted, head.module.weight.grad = head.module.weight.grad, None
    ce = F.cross_entropy(full_logits(head, hidden)[supervised(labels)], targets(labels))
    (ce + 0.5 * numeric_term(objective, head, hidden, labels).loss).backward()
    assert not head.module.weight.grad.is_sparse
    torch.testing.assert_close(head.module.weight.grad, wanted, rtol=1e-5, atol=1e-7)


def test_half_precision_weights_are_lifted():
    hidden, labels = batch(3)
    objective, module = NumericObjective(VOCAB), head_of().bfloat16()
    term = numeric_term(objective, Head(module), hidden.bfloat16(), labels)
    exact = F.linear(hidden.bfloat16().float(), module.weight.float())
    torch.testing.assert_close(term.loss, objective(exact, labels).numeric, rtol=1e-6, atol=1e-6)
    with torch.autocast("cpu", torch.bfloat16):  # autocast must not bring the product back to half precision
        assert torch.equal(numeric_term(objective, Head(module), hidden.bfloat16(), labels).loss, term.loss)


def test_the_windows_count_is_the_denominator():
    hidden, labels = batch(4)
    objective, head = NumericObjective(VOCAB), Head(head_of())
    count = objective.count(labels)[1]
    whole = numeric_term(objective, head, hidden, labels).loss
    parts = [
        numeric_term(objective, head, h, y, num_numbers=count).loss
        for h, y in zip(hidden.split(1), labels.split(1), strict=True)
    ]
    torch.testing.assert_close(sum(parts), whole)


def test_no_number_is_a_zero_that_keeps_the_graph():
    hidden, labels = batch(5)
    hidden.requires_grad_()
    term = numeric_term(NumericObjective(VOCAB), Head(head_of()), hidden, torch.full_like(labels, 1))
    term.loss.backward()
    assert term.loss.item() == 0 and term.num_numbers == 0 and (hidden.grad == 0).all()


def test_the_full_normaliser_is_asked_for():
    hidden, labels = batch(6)
    with pytest.raises(ValueError, match="pass the log-probability of every next token"):
        numeric_term(NumericObjective(VOCAB, "dist2"), Head(head_of()), hidden, labels)
    with pytest.raises(ValueError, match=r"expected hidden states \(B, T, d\)"):
        numeric_term(NumericObjective(VOCAB), Head(head_of()), hidden[:, :-1], labels)


# ---------------------------------------------------------------- heads of real architectures

TINY = dict(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, head_dim=16)  # fmt: skip


def model_of(kind: str):
    import transformers as hf

    config = {
        "llama": lambda: hf.LlamaConfig(**TINY),
        "gemma2": lambda: hf.Gemma2Config(**TINY, final_logit_softcapping=5.0),  # softcap
        "cohere": lambda: hf.CohereConfig(**TINY, logit_scale=0.0625),  # scale
        "granite": lambda: hf.GraniteConfig(**TINY, logits_scaling=8.0),  # divisor
        "phi": lambda: hf.PhiConfig(**{k: v for k, v in TINY.items() if k != "head_dim"}),  # bias
    }[kind]()
    torch.manual_seed(0)
    return hf.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


@pytest.mark.parametrize("kind", ["llama", "gemma2", "cohere", "granite", "phi"])
def test_reads_the_head_of(kind):
    model = model_of(kind)
    if model.get_output_embeddings().bias is not None:
        nn.init.normal_(model.get_output_embeddings().bias)
    ids = torch.randint(0, 64, (2, 6), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        logits = model(input_ids=ids).logits
        hidden = model.base_model(input_ids=ids).last_hidden_state
        got = Head.of(model).logits(hidden.reshape(-1, 32), VOCAB.ids)
    torch.testing.assert_close(got.reshape(2, 6, 10), logits[..., VOCAB.ids], rtol=1e-5, atol=1e-6)


def test_reads_the_head_of_a_vlm_under_peft(tiny):
    from peft import LoraConfig, get_peft_model

    from smmd_vlm.config import ModelConfig
    from smmd_vlm.model import load_base

    base = load_base(ModelConfig(model_name_or_path=str(tiny())))
    model = get_peft_model(base, LoraConfig(target_modules=["q_proj"]))
    assert Head.of(model).module is base.get_output_embeddings()


def test_refuses_heads_it_would_read_wrongly():
    from peft import LoraConfig, get_peft_model

    lora = get_peft_model(model_of("llama"), LoraConfig(target_modules=["lm_head"]))
    with pytest.raises(ValueError, match="without an adapter, got LoRA on it"):
        Head.of(lora)
    with pytest.raises(ValueError, match=r"get_output_embeddings\(\), got Linear"):
        Head.of(nn.Linear(2, 2))
    quantised = nn.Module()
    quantised.weight = torch.zeros(4, 4, dtype=torch.uint8)
    with pytest.raises(ValueError, match="keep the head out of quantisation"):
        Head(quantised).check()
    sharded = nn.Module()
    sharded.weight = torch.zeros(0)
    with pytest.raises(ValueError, match="use the logits path under ZeRO-3 and FSDP1"):
        Head(sharded).check()
