"""The doors: quick help, exit codes, and YAML files that parse."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from smmd_vlm.cli import VERBS, main

ROOT = Path(__file__).parents[1]
STUDIES = sorted((ROOT / "configs").glob("study_*.yaml"))
RUNS = sorted(set((ROOT / "configs").glob("*.yaml")) - set(STUDIES))


@pytest.mark.parametrize("argv", [["--help"], *([verb, "--help"] for verb in VERBS)], ids=" ".join)
def test_help_loads_no_torch(argv):
    code = f"import sys; from smmd_vlm.cli import main\ntry: main({argv!r})\nexcept SystemExit: pass\nassert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "usage: smmd-vlm" in done.stdout


def test_python_m_is_the_command():
    done = subprocess.run([sys.executable, "-m", "smmd_vlm", "--version"], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.startswith("smmd-vlm ")


def test_misuse_is_one_sentence_and_exit_code_2(capsys):
    assert main(["trian"]) == 2
    assert capsys.readouterr().err == f"smmd-vlm: expected a verb ({', '.join(VERBS)}), got 'trian'; see smmd-vlm --help\n"
    assert main([]) == 2
    assert main(["predict", "--model", "m"]) == 2
    assert "data" in capsys.readouterr().err
    assert main(["tiny", "--hidden", "33"]) == 2


def test_a_full_disk_says_what_to_do(monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("smmd_vlm.cli.call", full)
    assert main(["tiny"]) == 1
    assert "the disk is full ([Errno 28] No space left on device); make room and call this again" in capsys.readouterr().err


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_shipped_configurations_parse(path, monkeypatch):
    monkeypatch.chdir(ROOT)
    from smmd_vlm.runconfig import train_parser

    parsed = train_parser().parse_args(["--config", str(path)])
    assert parsed.train.output_dir


def test_the_qlora_recipe_is_4_bit_with_bf16(monkeypatch):
    from smmd_vlm.runconfig import train_parser

    parsed = train_parser().parse_args(["--config", str(ROOT / "configs" / "clocks_qwen3vl_4b_qlora.yaml")])
    assert parsed.model.load_in_4bit and parsed.train.bf16 and parsed.lora.enabled
    assert "Qwen3-VL-4B" in parsed.model.model_name_or_path


@pytest.mark.parametrize("path", sorted((ROOT / "configs" / "accelerate").glob("*.yaml")), ids=lambda path: path.stem)
def test_launcher_configurations_load_and_name_real_layers(path):
    import transformers.models.qwen3_vl.modeling_qwen3_vl as qwen
    from accelerate.commands.config.config_args import load_config_from_file

    config = load_config_from_file(str(path))
    assert config.num_processes == 2 and config.mixed_precision == "bf16"
    wrapped = getattr(config, "fsdp_config", None) or {}
    for name in filter(None, wrapped.get("fsdp_transformer_layer_cls_to_wrap", "").split(",")):
        assert hasattr(qwen, name), name


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_shipped_studies_parse_and_every_cell_is_a_run(path, monkeypatch):
    from smmd_vlm import losses
    from smmd_vlm.runconfig import train_parser
    from smmd_vlm.study import cell_flags, read_plan

    monkeypatch.chdir(ROOT)
    plan = read_plan(path)
    for cell, seed in plan.jobs():
        parsed = train_parser().parse_args(["--config", str(plan.base), *cell_flags(plan, cell, seed)])
        assert parsed.loss.name in {"none", *losses.LOSSES} and parsed.train.seed == seed


def test_switches_and_dashes():
    from smmd_vlm.cli import _plain_flags
    from smmd_vlm.config import QuickstartConfig

    argv = ["--with-controls", "--train-clocks", "5", "--out=a-b", "--with_controls", "false", "--with-controls"]
    plain = [
        "--with_controls",
        "true",
        "--train_clocks",
        "5",
        "--out=a-b",
        "--with_controls",
        "false",
        "--with_controls",
        "true",
    ]
    assert _plain_flags(argv, QuickstartConfig) == plain
