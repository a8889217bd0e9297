"""Ways into other people's trainers; docs/trainers.md shows each.

    hidden     hidden states x a few rows of the head: for trainers whose fused cross-entropy returns no logits
    trainer    `Trainer(compute_loss_func=...)` of transformers
    trl        a subclass of TRL's SFTTrainer
    ms_swift   an `--external_plugins` file of ms-swift

`hidden` and `trainer` import torch alone. A plain PyTorch loop needs no adapter: objective.count and objective(logits, labels).
"""
