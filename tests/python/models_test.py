"""Models by name, `--program hf:NAME`: parameters of the bundled configurations, a training step of each, bytes against scripts that have nothing of
Peakbench, and what is said of what cannot be used. timm and diffusers are tried where the oracle's Python has them.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

import warm_python
from given import ORACLE as PYTHON, PEAKBENCH

PACKAGE = Path(__file__).resolve().parents[2] / "python"
CONFIGURATIONS = json.loads((PACKAGE / "peakbench/models/configurations.json").read_text(encoding="utf-8"))
ENVIRONMENT = os.environ | {"PYTHONPATH": ":".join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")])),
                            "PATH": f"{PEAKBENCH.parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}  # fmt: skip
CARD = "h100-80gb"
# What transformers itself does not train.
FROZEN = {"hf:whisper-small": ["model.encoder.embed_positions.weight"], "hf:whisper-large-v3": ["model.encoder.embed_positions.weight"],
          "hf:dinov3-vit-b-16": ["embeddings.mask_token"], "hf:dinov3-vit-l-16": ["embeddings.mask_token"]}  # fmt: skip
OTHERS = {"torchvision": ["resnet18", "googlenet", "lraspp_mobilenet_v3_large", "fasterrcnn_mobilenet_v3_large_320_fpn"],
          "timm": ["resnet18", "vit_small_patch16_dinov3"]}  # fmt: skip

# Nothing of Peakbench: what somebody would write with transformers.
STOCK = """
import json
import sys
import torch
import transformers

form, dtype, batch, values = sys.argv[1], getattr(torch, sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4])
torch.manual_seed(0)
config = transformers.AutoConfig.for_model(**values)
config.use_cache = False
with torch.device("cuda"):
    model = getattr(transformers, form).from_config(config, dtype=dtype).train()
    if form == "AutoModelForImageClassification":
        inputs = {"pixel_values": torch.randn(batch, 3, 224, 224, dtype=dtype), "labels": torch.randint(1000, (batch,))}
    elif form == "AutoModelForZeroShotImageClassification":
        inputs = {"pixel_values": torch.randn(batch, 3, 224, 224, dtype=dtype), "input_ids": torch.randint(49408, (batch, 77)), "return_loss": True}
    elif form == "AutoModelForSpeechSeq2Seq":
        inputs = {"input_features": torch.randn(batch, config.num_mel_bins, 3000, dtype=dtype), "labels": torch.randint(config.vocab_size, (batch, 256))}
    else:
        tokens = torch.randint(config.vocab_size, (batch, 256))
        inputs = {"input_ids": tokens, "labels": tokens.clone()}
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    optimizer.zero_grad()
    loss = model(**inputs).loss
    loss.backward()
    optimizer.step()
    del loss
print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
"""
# The Auto class, the data type and the batch of each; the first is always run.
STOCK_CASES = {
    "llama-3.2-1b": ("AutoModelForCausalLM", "bfloat16", 2),
    "bert-base": ("AutoModelForMaskedLM", "float32", 3),
    "whisper-small": ("AutoModelForSpeechSeq2Seq", "float32", 1),
    "qwen2.5-7b": ("AutoModelForCausalLM", "bfloat16", 1),
    "gemma-3-1b": ("AutoModelForCausalLM", "float32", 2),
    "phi-3-mini": ("AutoModelForCausalLM", "bfloat16", 1),
    "olmo-2-7b": ("AutoModelForCausalLM", "bfloat16", 1),
    "gpt2": ("AutoModelForCausalLM", "float32", 4),
    "t5-base": ("AutoModelForSeq2SeqLM", "float32", 4),
    "vit-l-16": ("AutoModelForImageClassification", "float32", 8),
    "clip-vit-b-32": ("AutoModelForZeroShotImageClassification", "float32", 8),
}
ALWAYS = 1
HAVE_CONVOLUTIONS = ("whisper-small", "vit-l-16", "clip-vit-b-32")  # in backward, cuDNN chooses how much memory it works in
SHORT = {"float32": "fp32", "bfloat16": "bf16"}


def call(*words, folder, code=0, **more):
    done = subprocess.run([*map(str, words)], cwd=folder, env=ENVIRONMENT | more, capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, done.stderr


def has(package):
    return subprocess.run([PYTHON, "-c", f"import importlib.util as u, sys; sys.exit(u.find_spec({package!r}) is None)"], env=ENVIRONMENT).returncode == 0


def child(what, *names, folder):
    said, _ = call(PYTHON, Path(__file__).with_name("models_child.py"), what, *names, folder=folder)
    return {one.pop("name"): one for one in map(json.loads, said.splitlines())}


@pytest.fixture(scope="module")
def warm():
    return warm_python.served(PYTHON, [[PEAKBENCH, "emulate", "--no-lines", "--"], []], ENVIRONMENT, ("torch", "transformers.models.auto.modeling_auto"))


# ---- what the models are ----


@pytest.mark.parametrize("place", ["hf", pytest.param("diffusers", marks=pytest.mark.skipif(not has("diffusers"), reason="no diffusers"))])
def test_parameters_are_the_published_number(place, tmp_path):
    expected = {name: {"parameters": one["parameters"], "form": one.get("form")} for name, one in CONFIGURATIONS[place].items()}
    assert child("count", place, folder=tmp_path) == expected


def test_each_is_trained_for_a_step(tmp_path):
    names = [f"{place}:{name}" for place, known in CONFIGURATIONS.items() if has({"hf": "transformers"}.get(place, place)) for name in known]
    names += [f"{place}:{name}" for place, known in OTHERS.items() if has(place) for name in known]
    trained = child("train", *names, folder=tmp_path)
    assert list(trained) == names
    for name, one in trained.items():
        place, _, own = name.partition(":")
        assert 0 < one["loss"] < 20, name
        assert one["without_gradient"] == FROZEN.get(name, []), name
        if place == "hf":
            assert one["class"] == CONFIGURATIONS[place][own]["config"]["architectures"][0]
        # The loss of a part of the batch is of those samples. CLIP compares each sample with all of the batch.
        assert (one["halves_differ_by"] < 1e-5) != own.startswith("clip"), name


# ---- bytes ----


@pytest.mark.parametrize("name", STOCK_CASES)
def test_the_same_bytes_as_a_script_of_transformers(name, tmp_path, request):
    if list(STOCK_CASES).index(name) >= ALWAYS and not request.config.option.all:
        pytest.skip("--all runs it, too")
    form, dtype, batch = STOCK_CASES[name]
    call(PEAKBENCH, "run", "--program", f"hf:{name}", "--dtype", SHORT[dtype], "--batch", batch, "--strategy", "baseline", "--device", f"emulated:{CARD}",
         "--out", "out", "--no-report", folder=tmp_path, PEAKBENCH_PYTHON=PYTHON)  # fmt: skip
    (case,) = json.loads((tmp_path / "out/run.json").read_text())["cases"]
    option = "" if dtype == "float32" else f",dtype={SHORT[dtype]}"
    assert case["id"] == f"python/hf:{name}{option}/baseline/emulated:{CARD}/b{batch}"
    assert case["status"] == "ok"
    assert case["emulation"]["verdict"]["kind"] == "exact" or name in HAVE_CONVOLUTIONS
    (tmp_path / "stock.py").write_text(STOCK)
    values = {key: value for key, value in CONFIGURATIONS["hf"][name]["config"].items() if key != "architectures"}
    said, _ = call(PEAKBENCH, "emulate", "--no-lines", "--card", CARD, "--", PYTHON, "stock.py", form, dtype, batch, json.dumps(values), folder=tmp_path)
    assert [case["memory"]["peak_allocated_bytes"], case["memory"]["peak_reserved_bytes"]] == [int(word) for word in said.split()]
    assert case["memory"]["at_peak"]["parameter"] >= CONFIGURATIONS["hf"][name]["parameters"] * (4 if dtype == "float32" else 2)


# ---- the other commands ----

SMALL = "hf:gpt2,layers=1,seq=64"


def test_fit_ends_where_the_model_does(warm, tmp_path):
    values = {**CONFIGURATIONS["hf"]["qwen3-0.6b"]["config"], "num_hidden_layers": 3, "hidden_size": 64, "vocab_size": 100}
    (tmp_path / "config.json").write_text(json.dumps(values))
    call(PEAKBENCH, "fit", "--program", "hf:config.json", "--largest", "layers", "--strategy", "lora", "--batch", "2", "--card", "t4-16gb", "--check", "1",
         "--no-report", "--out", "out", folder=tmp_path, PEAKBENCH_PYTHON=str(warm))  # fmt: skip
    (cell,) = json.loads((tmp_path / "out/fit.json").read_text())["cells"]
    assert (cell["state"], cell["largest"], cell["at_limit"]) == ("fits", 3, True)
    assert cell["limit_reason"] == "hf: config.json: layers=4: the model has 3"


def test_fit_finds_what_a_run_of_each_batch_says(request, warm, tmp_path):
    if not request.config.option.all:
        pytest.skip("--all runs it, too")
    words = ["--program", "hf:qwen2.5-7b,dtype=bf16", "--strategy", "lora+checkpointing", "--no-report", "--overwrite", "--out", "out"]
    call(PEAKBENCH, "fit", *words, "--card", "rtx-4090-24gb", folder=tmp_path, PEAKBENCH_PYTHON=str(warm))
    (cell,) = json.loads((tmp_path / "out/fit.json").read_text())["cells"]
    assert (cell["state"], cell["fails"]["value"]) == ("fits", cell["largest"] + 1)
    batches = ",".join(str(one) for one in range(1, cell["largest"] + 3))
    call(PEAKBENCH, "run", *words, "--device", cell["device"], "--batch", batches, folder=tmp_path, PEAKBENCH_PYTHON=str(warm))
    statuses = [case["status"] for case in json.loads((tmp_path / "out/run.json").read_text())["cases"]]
    assert statuses == ["ok"] * cell["largest"] + ["out_of_memory"] * 2


@pytest.mark.parametrize("words, says", [
    (["--program", SMALL, "--largest", "rank"], "--largest rank: no part of the stack has a rank"),
    (["--program", "torchvision:resnet18", "--largest", "seq"], "--largest seq: torchvision:resnet18 has no integer option seq"),
    (["--program", SMALL, "--model", "gpt2"], "--model and --program both name a model; leave one of them out"),
    (["--program", SMALL, "--cudnn", "on"], f"--cudnn is for models of Peakbench; give the function of --program an option instead, and write it after a "
                                            f"comma ({SMALL},key=value)"),
    (["--program", SMALL, "--", "python3", "train.py"], "--program is for models of Peakbench; a program after -- has its own options"),
])  # fmt: skip
def test_what_fit_refuses(words, says, warm, tmp_path):
    out, err = call(PEAKBENCH, "fit", *words[:2], "--card", "t4-16gb", *words[2:], folder=tmp_path, code=2, PEAKBENCH_PYTHON=str(warm))
    assert (out, err) == ("", f"peakbench: {says}\n")


def test_suites_advise_and_gate(warm, tmp_path):
    (tmp_path / "suite.toml").write_text(
        f'title = "names"\n[[programs]]\npython = "{SMALL}"\nstrategies = ["baseline", "lora"]\nbatch_sizes = [2]\ndevices = ["emulated:t4-16gb"]\n'
    )
    for out in ("base", "new"):
        call(PEAKBENCH, "run", "suite.toml", "--no-report", "--out", out, folder=tmp_path, PEAKBENCH_PYTHON=str(warm))
    call(PEAKBENCH, "gate", "base", "new", folder=tmp_path)
    said, _ = call(PEAKBENCH, "advise", "base", "baseline", "--json", folder=tmp_path, PEAKBENCH_PYTHON=str(warm))
    tried = {one["strategy"]: one for one in json.loads(said)["tried"]}
    cases = json.loads((tmp_path / "base/run.json").read_text())["cases"]
    assert tried["lora"]["peak_allocated_bytes"] == cases[1]["memory"]["peak_allocated_bytes"]


def test_axes_and_a_configuration_of_the_user(warm, tmp_path):
    (tmp_path / "mine").mkdir()
    values = {**CONFIGURATIONS["hf"]["qwen3-0.6b"]["config"], "num_hidden_layers": 3}
    (tmp_path / "mine/config.json").write_text(json.dumps(values))
    said, _ = call(PEAKBENCH, "run", "--program", "hf:./mine", "--dtype", "bf16,fp32", "--seq", "32,64", "--batch", "2", "--card", CARD, "--out", "out",
                   folder=tmp_path, PEAKBENCH_PYTHON=str(warm))  # fmt: skip
    cases = {case["id"]: case for case in json.loads((tmp_path / "out/run.json").read_text())["cases"]}
    assert list(cases) == [f"python/hf:./mine{dtype},seq={seq}/baseline/emulated:{CARD}/b2" for dtype in (",dtype=bf16", "") for seq in (32, 64)]
    sizes = [case["memory"]["at_peak"]["parameter"] for case in cases.values()]
    assert 2 * sizes[0] == 2 * sizes[1] == sizes[2] == sizes[3]
    # As of the user's folder, and of the file itself; fewer layers; the same of a name in the hub's cache.
    cached = tmp_path / "hub/models--me--mine/snapshots/0123"
    cached.mkdir(parents=True)
    (cached / "config.json").write_text(json.dumps(values))
    (cached.parents[1] / "refs").mkdir()
    (cached.parents[1] / "refs/main").write_text("0123")
    for name in ("./mine/config.json", "me/mine"):
        said, _ = call(PEAKBENCH, "run", "--program", f"hf:{name},layers=2", "--card", CARD, "--dry-run", folder=tmp_path, PEAKBENCH_PYTHON=str(warm),
                       HF_HUB_CACHE=str(tmp_path / "hub"))  # fmt: skip
        assert f"python/hf:{name},layers=2/baseline/emulated:{CARD}/b1" in said


# ---- what cannot be used ----


def refused(warm, folder, *words, says, **more):
    out, err = call(PEAKBENCH, "run", "--program", *words, "--card", CARD, "--dry-run", folder=folder, code=2, PEAKBENCH_PYTHON=str(warm), **more)
    assert (out, err) == ("", f"peakbench: --program: {says}\n")


def test_what_is_typed_wrong_is_one_sentence(warm, tmp_path):
    for words, says in {
        ("hf:llama-3.1-8c",): 'hf has no model "llama-3.1-8c"; did you mean "llama-3.1-8b"?',
        ("hf:zzz",): 'hf has no model "zzz"; see `peakbench list models --library hf`, or give the path of a config.json',
        ("hf:",): "hf has many models: say which, hf:NAME (peakbench list models --library hf)",
        ("hf:gpt2,sq=4",): 'hf: gpt2 takes no option "sq"; did you mean "seq"?',
        ("hf:gpt2,seq=many",): 'hf: gpt2: seq: expected an integer, got "many"',
        ("hf:gpt2,seq=0",): "hf: gpt2: seq=0: expected an integer of 1 or more",
        ("hf:gpt2", "--seq", "2048"): "hf: gpt2: seq=2048 is too long: the model has 1,024 positions",
        ("hf:gpt2,layers=13",): "hf: gpt2: layers=13: the model has 12",
        ("hf:gpt2,dtype=fp8",): 'hf: gpt2: dtype: expected fp32, bf16 or fp16, got "fp8"',
        ("hf:gpt2,attn=flash",): 'hf: gpt2: attn: expected auto, sdpa or eager, got "flash"',
        ("hf:vit-b-16", "--seq", "16"): 'hf: vit-b-16 takes no option "seq"; there is dtype, attn, image, layers',
        ("hf:./none/config.json",): "hf: there is no file none/config.json",
        ("hf:me/none",): 'hf: "me/none" is neither a file nor in the hub\'s cache on this machine; get its configuration with '
                         "`hf download me/none config.json`, or give the path of a config.json",
        ("torchvision:resnet-18",): 'torchvision has no model "resnet-18"; did you mean "resnet18"?',
        ("torchvision:raft_small",): "torchvision: raft_small has no loss: it is quantized, or finds optical flow",
    }.items():  # fmt: skip
        refused(warm, tmp_path, *words, says=says, HF_HUB_CACHE=str(tmp_path / "hub"))
    out, err = call(PEAKBENCH, "run", "--program", "hf:gpt2", "--batch", "0", "--dry-run", folder=tmp_path, code=2, PEAKBENCH_PYTHON=str(warm))
    assert "--batch" in err and not out


def test_what_is_written_wrong_is_one_sentence(warm, tmp_path):
    file = tmp_path / "config.json"
    bert = CONFIGURATIONS["hf"]["bert-base"]["config"]
    version = call(PYTHON, "-c", "import transformers; print(transformers.__version__)", folder=tmp_path)[0].strip()
    newer = "a newer release may (pip install -U transformers)"
    for written, says in {
        "{": "hf: config.json is not JSON: Expecting property name enclosed in double quotes (line 1)",
        "[]": "hf: config.json is no configuration: expected a JSON object",
        "{}": "hf: config.json is no configuration of transformers: it has no model_type",
        '{"model_type": "llama9"}': f'hf: config.json: transformers {version} has no model of the type "llama9"; {newer}',
        '{"model_type": "llama", "architectures": ["Llama9ForCausalLM"]}': f"hf: config.json: transformers {version} has no class Llama9ForCausalLM; {newer}",
        json.dumps({**bert, "architectures": ["BertModel"]}): 'hf: config.json: BertModel computes no loss: name BertForMaskedLM in its "architectures", or give '
        "loss=features (mean squared error of the pooled output against random features)",
        json.dumps({**bert, "architectures": ["BertForQuestionAnswering"]}): "hf: config.json: no batch is known for BertForQuestionAnswering; known are "
        "AutoModelForSpeechSeq2Seq, AutoModelForSeq2SeqLM, AutoModelForMaskedLM, AutoModelForCausalLM, AutoModelForZeroShotImageClassification, "
        "AutoModelForImageClassification, AutoModelForSequenceClassification",
    }.items():  # fmt: skip
        file.write_text(written)
        refused(warm, tmp_path, "hf:config.json", says=says)
    file.write_text(json.dumps({**bert, "hidden_size": "wide"}))
    _, err = call(PEAKBENCH, "run", "--program", "hf:config.json", "--dry-run", folder=tmp_path, code=2, PEAKBENCH_PYTHON=str(warm))
    assert err.startswith("peakbench: --program: hf: config.json: transformers cannot use this configuration: ") and err.count("\n") == 1


def test_a_library_that_is_missing_or_too_old_is_one_sentence(tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}/old:{PACKAGE}" exec "{PYTHON}" "$@"\n')
    python.chmod(0o755)
    (tmp_path / "old/timm").mkdir(parents=True)
    (tmp_path / "old/timm/__init__.py").touch()
    (tmp_path / "old/timm-0.9.16.dist-info").mkdir()
    (tmp_path / "old/timm-0.9.16.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: timm\nVersion: 0.9.16\n")
    refused(python, tmp_path, "timm:resnet18", says="timm: timm 0.9.16 is too old; it takes 1.0 or newer (pip install -U timm)")
    if not has("diffusers"):
        refused(python, tmp_path, "diffusers:sdxl", says=f"diffusers: {Path(PYTHON).with_name('python')} has no diffusers: install it there (pip install diffusers)")


# ---- the list ----


def test_the_list(tmp_path):
    said, _ = call(PEAKBENCH, "list", "models", "--library", "hf", folder=tmp_path, PEAKBENCH_PYTHON=PYTHON)
    lines = said.splitlines()
    assert lines[0].split() == ["model", "parameters", "source"]
    assert [line.split() for line in lines[1:]] == [[f"hf:{name}", f"{one['parameters']:,}", one["source"]] for name, one in CONFIGURATIONS["hf"].items()]
    said, _ = call(PEAKBENCH, "list", "models", "--library", "torchvision", "--json", folder=tmp_path, PEAKBENCH_PYTHON=PYTHON)
    assert {"name": "resnet50", "parameters": 25557032, "source": None} in json.loads(said)
    for words, says in {
        ("models", "--library", "hg"): '--library: there is no library "hg"; did you mean "hf"?',
        ("strategies", "--library", "hf"): "--library is for models: peakbench list models --library hf",
    }.items():
        assert call(PEAKBENCH, "list", *words, folder=tmp_path, code=2, PEAKBENCH_PYTHON=PYTHON) == ("", f"peakbench: {says}\n")
