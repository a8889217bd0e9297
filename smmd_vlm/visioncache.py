"""Features of a frozen vision tower, computed once for every image and kept on disk across epochs and runs.

They enter through the model's own encoder-output argument (`mm_encoder_outputs`), deepstack levels included; nothing is
patched. A file is found by the image's bytes under a folder named after everything else that decides the features: the
tower's weights and precision, the image processor and the library's version. Safetensors, written to a temporary name.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from smmd_vlm.dataset import open_image

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin


class VisionCache:
    """One folder of features for one tower, processor and image budget.

    load(image) -> (features (n, 1 + L, hidden), grid (1, 3)): n image tokens; the merged features, then L deepstack levels.
    """

    def __init__(self, folder: str | Path, model: PreTrainedModel, processor: ProcessorMixin) -> None:
        self.processor = processor
        if Path(folder).is_file():
            raise ValueError(f"data.vision_cache must name a folder, {folder} is a file")
        self.folder = Path(folder) / _signature(model, processor)

    def path(self, image: bytes) -> Path:
        name = hashlib.sha256(image).hexdigest()
        return self.folder / name[:2] / f"{name}.safetensors"

    def load(self, image: bytes) -> tuple[Tensor, Tensor]:
        with safe_open(self.path(image), framework="pt") as file:
            return file.get_tensor("features"), file.get_tensor("grid")

    @torch.no_grad()
    def fill(self, model: PreTrainedModel, images: Iterable[bytes], *, batch_size: int) -> int:
        """Compute what is missing; returns how many images that were. A killed fill goes on where it stopped."""
        made = 0
        for batch in _batches((image for image in images if not self.path(image).is_file()), batch_size):
            inputs = self.processor.image_processor([open_image(image) for image in batch], return_tensors="pt").to(
                model.device
            )
            output = model.get_image_features(inputs["pixel_values"], inputs["image_grid_thw"], return_dict=True)
            levels = [output.pooler_output, *(getattr(output, "deepstack_features", None) or ())]
            for index, image in enumerate(batch):
                features = torch.stack([level[index] for level in levels], dim=1).contiguous().cpu()
                path = self.path(image)
                path.parent.mkdir(parents=True, exist_ok=True)
                temporary = path.with_suffix(f".{os.getpid()}.tmp")
                save_file({"features": features, "grid": inputs["image_grid_thw"][index : index + 1].cpu()}, temporary)
                os.replace(temporary, path)
                made += 1
        return made


def encoder_outputs(features: Tensor) -> dict[str, object]:
    """(n, 1 + L, hidden) features of a batch's images, concatenated -> the model's `mm_encoder_outputs`."""
    from transformers.models.qwen3_vl.modeling_qwen3_vl import BaseModelOutputWithDeepstackFeatures

    merged, *levels = features.unbind(1)
    return {
        "image": BaseModelOutputWithDeepstackFeatures(
            pooler_output=(merged,), deepstack_features=[(level,) for level in levels]
        )
    }


def check_tower_is_frozen(model: torch.nn.Module) -> None:
    """Cached features are right only while nothing in the tower changes."""
    moving = [name for name, parameter in model.named_parameters() if ".visual." in name and parameter.requires_grad]
    if moving:
        raise ValueError(
            f"data.vision_cache needs a frozen vision tower, but {len(moving)} of its parameters are trained, for example {moving[0]}"
        )


def _signature(model: PreTrainedModel, processor: ProcessorMixin) -> str:
    import transformers

    digest = hashlib.sha256()
    tower = model.model.visual
    for name, tensor in sorted(tower.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    settings = processor.image_processor.to_dict()
    digest.update(json.dumps([settings, transformers.__version__], sort_keys=True, default=str).encode())
    return digest.hexdigest()[:32]


def _batches(images: Iterator[bytes], size: int) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    seen: set[bytes] = set()
    for image in images:
        key = hashlib.sha256(image).digest()
        if key in seen:  # several questions about one image
            continue
        seen.add(key)
        batch.append(image)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
