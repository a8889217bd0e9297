"""What tests/test_ranks.py starts in processes of its own, one per rank; not a test module.

    python -m tests.ranks OUT KIND:LOSS ...       with RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT set

Rank 0 writes {KIND:LOSS: gradients of one step over the same eight samples} to OUT. KIND: trainer, compute_loss, trl, fsdp.
"""

from __future__ import annotations

import os
import sys
import warnings

import torch
import torch.distributed as dist
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

from smmd_vlm import NumericObjective, NumericVocab
from smmd_vlm.adapters.trainer import ComputeLoss
from smmd_vlm.objective import supervised, targets
from smmd_vlm.trainer import NumericTrainer

VOCAB = NumericVocab.from_mapping({**{str(d): d for d in range(10)}, ".": 10})
T, V = 10, 32
# numbers a sample; taken in turn, the second of two ranks sees no number in the first micro-batch, the first many
COUNTS = [7, 0, 5, 0, 2, 6, 0, 3]


def sample(index: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(index)
    ids = torch.randint(11, V, (T,), generator=generator)
    ids[T - COUNTS[index] :] = torch.randint(0, 10, (COUNTS[index],), generator=generator)
    labels = ids.clone()
    labels[: index % 3 + 1] = -100
    return {"input_ids": ids, "labels": labels}


def collate(samples):
    return {name: torch.stack([torch.as_tensor(sample[name]) for sample in samples]) for name in ("input_ids", "labels")}


def model_of() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=V, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=False)  # fmt: skip
    return LlamaForCausalLM(config)


class InOrder:
    """A trainer whose sampler does not shuffle."""

    def _get_train_sampler(self, dataset=None):
        return torch.utils.data.SequentialSampler(dataset or self.train_dataset)


class KeepGradients(TrainerCallback):
    def on_pre_optimizer_step(self, args, state, control, model=None, **_):
        self.found = {n.removeprefix("module."): p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


def step_of_a_trainer(kind: str, loss: str) -> dict[str, torch.Tensor]:
    keep, objective = KeepGradients(), NumericObjective(VOCAB, loss, 0.5)
    world = int(os.environ["WORLD_SIZE"])
    args = dict(
        output_dir=os.path.join(os.path.dirname(sys.argv[1]), "out"), max_steps=1, per_device_train_batch_size=1, gradient_accumulation_steps=8 // world,
        max_grad_norm=0.0, logging_steps=1, save_strategy="no", report_to="none", use_cpu=True, remove_unused_columns=False, disable_tqdm=True,
    )  # fmt: skip
    more = dict(model=model_of(), data_collator=collate, callbacks=[keep])
    samples = [sample(index) for index in range(8)]
    if kind == "trainer":
        trainer = type("InOrderNumeric", (InOrder, NumericTrainer), {})(
            args=TrainingArguments(**args, label_names=["labels"]), objective=objective, train_dataset=samples, **more
        )
    elif kind == "compute_loss":
        compute_loss = ComputeLoss(objective)
        trainer = type("InOrderStock", (InOrder, Trainer), {})(
            args=TrainingArguments(**args), compute_loss_func=compute_loss, train_dataset=samples, **more
        )
        compute_loss.attach(trainer)
    else:
        from datasets import Dataset
        from trl import SFTConfig

        from smmd_vlm.adapters.trl import NumericSFTTrainer
        from tests.test_adapters_trainer import _tokenizer

        rows = Dataset.from_list(
            [{k: v.tolist() for k, v in {**s, "attention_mask": torch.ones(T, dtype=torch.long)}.items()} for s in samples]
        )
        config = SFTConfig(
            **args, dataset_kwargs={"skip_prepare_dataset": True}, max_length=None, gradient_checkpointing=False, bf16=False
        )
        more["data_collator"] = lambda batch: {name: torch.tensor([row[name] for row in batch]) for name in batch[0]}
        trainer = type("InOrderSFT", (InOrder, NumericSFTTrainer), {})(
            args=config, objective=objective, train_dataset=rows, processing_class=_tokenizer(), **more
        )
    trainer.train()
    return keep.found


def step_of_fully_shard(loss: str) -> dict[str, torch.Tensor]:
    """torch's own sharding around the model; the loop sums the counts over micro-batches and ranks."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (world,))
    model, objective = model_of(), NumericObjective(VOCAB, loss, 0.5)
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    own = [collate([sample(index)]) for index in range(rank, 8, world)]
    counts = sum(objective.count(batch["labels"]) for batch in own)
    dist.all_reduce(counts)
    for batch in own:
        labels = batch["labels"]
        logits = model(input_ids=batch["input_ids"], logits_to_keep=supervised(labels)).logits.reshape(-1, V)
        terms = objective.rows(logits, targets(labels), counts=counts, runs=objective.runs(labels))
        (terms.loss * world).backward()  # fully_shard, like DDP, averages gradients over ranks
    found = {name: p.grad.full_tensor() for name, p in model.named_parameters()}
    dist.barrier()
    return found


def main() -> None:
    out, *cases = sys.argv[1:]
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    found = {}
    for case in cases:
        kind, loss = case.split(":")
        found[case] = step_of_fully_shard(loss) if kind == "fsdp" else step_of_a_trainer(kind, loss)
    if int(os.environ["RANK"]) == 0:
        torch.save(found, out)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
