"""smmd-vlm: teach vision-language models to read numbers off images.

Reading order: kernels, vocab, losses/smmd, objective (the signal); records, dataset, collate (the data);
model, train, predict (the run); quickstart (the tour).

Shapes, one legend for the whole project:
    B batch   T tokens   V vocabulary (width of the head)   R kept rows (next token supervised)
    P numeric target rows (of the R)   N number tokens (columns)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smmd_vlm.objective import NumericObjective
    from smmd_vlm.vocab import NumericVocab

__version__ = "0.1.0"
__all__ = ["NumericObjective", "NumericVocab"]

_HOMES = {"NumericObjective": "smmd_vlm.objective", "NumericVocab": "smmd_vlm.vocab"}


def __getattr__(name: str):
    if name in _HOMES:  # torch is imported when a name is first used, not when the package is
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'smmd_vlm' has no attribute {name!r}")
