"""The ms-swift plugin against a stub of ms-swift's call (4.6): labels and logits cut to supervised rows, counts of the window."""

import importlib.util
import sys
import types
from pathlib import Path

import pytest
import torch

from smmd_vlm import NumericObjective, NumericVocab

ROOT = Path(__file__).parents[1]
VOCAB = {**{str(d): d for d in range(10)}, ".": 10, "word": 11}
V, T = 16, 7


class BaseLoss:
    def __init__(self, args, trainer):
        self.args, self.trainer = args, trainer
        self.is_megatron = False


@pytest.fixture
def plugin(monkeypatch):
    """adapters/ms_swift.py, loaded as --external_plugins loads a file."""
    stub = types.ModuleType("swift.loss")
    stub.BaseLoss, stub.loss_map = BaseLoss, {}
    monkeypatch.setitem(sys.modules, "swift", types.ModuleType("swift"))
    monkeypatch.setitem(sys.modules, "swift.loss", stub)
    spec = importlib.util.spec_from_file_location("numeric_plugin", ROOT / "smmd_vlm" / "adapters" / "ms_swift.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return stub.loss_map["numeric"]


class Tokenizer:
    all_special_ids: list[int] = []

    def get_vocab(self):
        return VOCAB


class SwiftTrainer:
    """What the plugin sees of one: the Trainer's count of tokens, its template and its arguments."""

    model_accepts_loss_kwargs = True

    def __init__(self, **args):
        settings = {"average_tokens_across_devices": True, "world_size": 1, "use_logits_to_keep": None, **args}
        self.args = types.SimpleNamespace(**settings)
        self.template = types.SimpleNamespace(tokenizer=Tokenizer(), sequence_parallel_size=1)
        self.accelerator = types.SimpleNamespace(num_processes=2)

    def _get_num_items_in_batch(self, batches, device):
        return sum((batch["labels"][:, 1:] != -100).sum() for batch in batches)


def cut(logits, labels):
    """ms-swift's prepare_logits_to_keep: a batch of one loses every unsupervised position, others a common prefix."""
    if len(labels) == 1:
        mask = (labels != -100)[0]
        keep = torch.nn.functional.pad(mask[1:], (0, 1), value=True)
        return logits[:, keep], torch.nn.functional.pad(labels[:, mask], (1, 0), value=-100)
    length = labels.shape[-1] - (labels != -100).int().argmax(-1).min().item() + 1
    return logits[:, -length:], labels[:, -length:]


def window(batches: int, size: int):
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 12, (batches * size, T), generator=generator)
    labels[:, :2] = -100
    labels[::2, 4] = -100
    logits = torch.randn(batches * size, T, V, generator=generator)
    return logits, labels


def run(plugin, logits, labels, batches, trainer=None, keep=cut):
    trainer = trainer or SwiftTrainer()
    loss = plugin(trainer.args, trainer)
    pieces = [{"labels": piece} for piece in labels.chunk(batches)]
    tokens = trainer._get_num_items_in_batch(pieces, torch.device("cpu"))
    total = 0.0
    for z, y in zip(logits.chunk(batches), labels.chunk(batches), strict=True):
        z, y = keep(z, y)
        outputs = types.SimpleNamespace(logits=z)
        total = total + loss(outputs, y, num_items_in_batch=tokens, loss_scale=None, trainer=trainer)
    return total


@pytest.mark.parametrize(("batches", "size"), [(1, 4), (2, 2), (4, 1)])
@pytest.mark.parametrize("name", ["smmd", "dist2"])
def test_equals_the_objective_over_the_window(plugin, monkeypatch, capsys, batches, size, name):
    monkeypatch.setenv("SMMD_VLM_LOSS", name)
    monkeypatch.setenv("SMMD_VLM_WEIGHT", "0.5")
    logits, labels = window(batches, size)
    objective = NumericObjective(NumericVocab.from_mapping(VOCAB), name, 0.5)
    torch.testing.assert_close(run(plugin, logits, labels, batches), objective(logits, labels).loss)
    assert f"cross-entropy + 0.5 x {name} over 10 number tokens" in capsys.readouterr().out


def test_options_come_from_the_environment(plugin, monkeypatch):
    monkeypatch.setenv("SMMD_VLM_OPTIONS", '{"sigmas": [1.0]}')
    logits, labels = window(1, 4)
    objective = NumericObjective(NumericVocab.from_mapping(VOCAB), "smmd", 0.3, sigmas=[1.0])
    torch.testing.assert_close(run(plugin, logits, labels, 1), objective(logits, labels).loss)


def test_whole_number_losses_want_uncut_labels(plugin, monkeypatch):
    monkeypatch.setenv("SMMD_VLM_LOSS", "ntil")
    logits, labels = window(4, 1)
    with pytest.raises(ValueError, match="pass --use_logits_to_keep false"):
        run(plugin, logits, labels, 4)
    whole = run(plugin, logits, labels, 4, SwiftTrainer(use_logits_to_keep=False), keep=lambda z, y: (z, y))
    torch.testing.assert_close(whole, NumericObjective(NumericVocab.from_mapping(VOCAB), "ntil")(logits, labels).loss)


def test_a_count_over_ranks_that_the_trainer_does_not_undo_is_undone(plugin):
    logits, labels = window(1, 4)
    once = run(plugin, logits, labels, 1)
    trainer = SwiftTrainer()
    trainer.model_accepts_loss_kwargs = False  # as ms-swift's Qwen-VL templates say
    torch.testing.assert_close(run(plugin, logits, labels, 1, trainer), 2 * once)


def test_evaluation_without_a_count(plugin):
    logits, labels = window(1, 4)
    trainer = SwiftTrainer()
    loss = plugin(trainer.args, trainer)
    objective = NumericObjective(NumericVocab.from_mapping(VOCAB))
    outputs = types.SimpleNamespace(logits=logits)
    torch.testing.assert_close(loss(outputs, labels, num_items_in_batch=None), objective(logits, labels).loss)


@pytest.mark.parametrize(
    ("outputs", "more", "message"),
    [
        (types.SimpleNamespace(logits=None), {}, "a fused cross-entropy returns none"),
        (types.SimpleNamespace(logits=torch.zeros(1, 2, V)), {"loss_scale": torch.ones(1, 2)}, "use --loss_scale default"),
    ],
)
def test_refuses_in_one_sentence(plugin, outputs, more, message):
    trainer = SwiftTrainer()
    with pytest.raises(ValueError, match=message):
        plugin(trainer.args, trainer)(outputs, torch.zeros(1, 2, dtype=torch.long), **more)


def test_sequence_parallel_and_megatron_are_refused(plugin, monkeypatch):
    trainer = SwiftTrainer()
    trainer.template.sequence_parallel_size = 2
    logits, labels = window(1, 4)
    with pytest.raises(ValueError, match="--sequence_parallel_size 1"):
        run(plugin, logits, labels, 1, trainer)
    monkeypatch.setattr(BaseLoss, "__init__", lambda self, args, trainer: setattr(self, "is_megatron", True))
    with pytest.raises(ValueError, match="Megatron"):
        plugin(trainer.args, trainer)


def test_losses_and_adapters_import_no_transformers():
    import subprocess

    code = (
        "import sys; import smmd_vlm.losses, smmd_vlm.objective, smmd_vlm.runs, smmd_vlm.vocab;"
        "import smmd_vlm.adapters.hidden, smmd_vlm.adapters.trainer; assert 'transformers' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
