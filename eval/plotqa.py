"""PlotQA as items, streamed: its question files are gigabytes, V2 has 29 million rows.

`{train,val,test}/qa_pairs_v1.json` (or V2) with {"qa_pairs": [...]}, pictures in `png/<image_index>.png`.
Paper: Methani et al., WACV 2020. Its metric, within 5 % for numbers and exact for text, is `relaxed`; kinds are `type / template`.
Answers are numbers with float noise (1.1600000000000001): they are written with `write_number`, the raw one stays in meta.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from eval.items import SPLIT_NAMES, Item, MissingSplit, Picture, answer_text, field_of
from eval.jsonstream import stream_array


def read_plotqa(data: Path, split: str, *, version: int | None = None) -> Iterator[Item]:
    """One split; `version` chooses between qa_pairs_v1 and v2 where both are there."""
    folder = next((data / name for name in SPLIT_NAMES[split] if (data / name).is_dir()), None)
    if folder is None:
        raise MissingSplit(f"expected a folder {SPLIT_NAMES[split][0]} in {data} with qa_pairs_v1.json or v2, found none")
    files = sorted(path for path in folder.glob("*.json") if path.name.lower().startswith("qa_pairs"))
    if version is not None:
        files = [path for path in files if re.search(rf"v{version}\b", path.stem.lower())]
    if len(files) != 1:
        raise ValueError(
            f"expected one question file qa_pairs_v1.json or v2 in {folder}, found {', '.join(path.name for path in files) or 'none'}; "
            "choose with plotqa_v1 or plotqa_v2"
        )
    return _items(files[0], split)


def _items(path: Path, split: str) -> Iterator[Item]:
    found = re.search(r"v[12]\b", path.stem.lower())
    name = f"plotqa-{found[0]}" if found else "plotqa"
    pictures = path.parent / "png"
    for place, row in enumerate(stream_array(path, key="qa_pairs")):
        where = f"{path}, row {place}"
        index = str(field_of(row, ("image_index",), where))
        question_id = row.get("question_id", row.get("qid", place))
        item_id = f"{name}-{split}-{index}-{question_id}"
        answer = field_of(row, ("answer",), where)
        yield Item(
            id=item_id,
            question=str(field_of(row, ("question_string", "question"), where)).strip(),
            answer=answer_text(answer),
            task="chart",
            kind=f"{row.get('type', '(no type)')} / {row.get('template', '(no template)')}",
            group=f"plotqa-{split}-{index}",
            split=split,
            image=Picture(pictures, f"{index}.png"),
            meta={"image_index": row["image_index"], "question_id": question_id, "answer": answer},
        )
