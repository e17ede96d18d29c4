"""The node that the shapes run on: a share with a job directory, a local disk, and programs that record their starts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcherslab.isolation import LOCAL, ROOT, bind_mount, mount_tmpfs

from .share import mount_share

SHARE = ROOT / "share"
JOB = SHARE / "job"
HOME = ROOT / "home" / "me"
SCRATCH = ROOT / "scratch"
PROGRAMS = ROOT / "programs"
CONFIG = ROOT / "sharefs.yaml"
_INSTALLED = Path("/opt/sharefs")
_STARTS = ROOT / "starts"
_BACKING = ROOT / "backing"
_SOURCE = Path(__file__).parent.parent
_TIMEOUT = 120

# Launchers, interpreters and what else the shapes start. Programs of coreutils are the real ones.
_NAMES = """
    python python3 python3.10 torchrun deepspeed accelerate accelerate-launch srun sbatch salloc mpirun mpiexec
    orterun horovodrun jsrun conda mamba micromamba uv uvx poetry pixi hatch pipenv rye pdm docker podman singularity
    apptainer enroot ray ssh pdsh scp nvidia-smi scontrol squeue hf huggingface-cli modelscope wandb git pip pip3 rsync
    nsys ncu py-spy coverage kernprof numactl sudo tmux screen parallel colossalai composer fabric lightning torchx tune
    litgpt trl axolotl llamafactory-cli swift nemo megatron lm_eval lm-eval vllm sglang ipython jupyter papermill
    virtualenv curl wget bsub qsub fish tcsh zsh flux perf valgrind gdb xvfb-run systemd-run rocprof aprun
""".split()

_LOADS_ALL = """\
import argparse
from datasets import load_dataset
from transformers import AutoModelForCausalLM


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache_dir", type=str, default=None)
    parser.add_argument("--output_dir", type=str, default="out")
    args = parser.parse_args()
    data = load_dataset("json", data_files="a.json", cache_dir=args.cache_dir)
    model = AutoModelForCausalLM.from_pretrained("gpt2", cache_dir=args.cache_dir)


if __name__ == "__main__":
    main()
"""
_LOADS_MODELS = "".join(line for line in _LOADS_ALL.splitlines(keepends=True) if "load_dataset(" not in line)
_REQUIRED = _LOADS_ALL.replace("type=str, default=None", "type=str, required=True")
_FEATURES = """\
import argparse
import os
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--cache_dir", required=True)
args = parser.parse_args()
features = torch.load(os.path.join(args.cache_dir, "features_train.pt"))
"""
_TWO_HUBS = _LOADS_ALL.replace(
    "\n\nif __name__", '    judge = AutoModelForCausalLM.from_pretrained("gpt2-large")\n\n\nif __name__'
)
_IMAGE_HUB = _LOADS_ALL.replace("import argparse\n", "import argparse\nimport timm\n").replace(
    "\n\nif __name__", '    judge = timm.create_model("resnet50", pretrained=True)\n\n\nif __name__'
)
_VARIABLES_ONLY = 'from datasets import load_dataset\n\nload_dataset("json", data_files="a.json")\n'
_OWN_HOME = f'import os\n\nos.environ["HF_HOME"] = "{SHARE}/hf"\n' + _VARIABLES_ONLY
_OWN_CACHE = _VARIABLES_ONLY.replace('"a.json")', f'"a.json", cache_dir="{SHARE}/d")')
_OWN_DEFAULT = _LOADS_ALL.replace("default=None", f'default="{SHARE}/hf"')
_NO_CACHES = "import torch\n\nprint(torch.cuda.device_count())\n"
_HF_PARSER = """\
import sys
from dataclasses import dataclass, field
from typing import Optional

from datasets import load_dataset
from transformers import AutoModelForCausalLM, HfArgumentParser, TrainingArguments


@dataclass
class ModelArguments:
    model_name_or_path: Optional[str] = field(default=None)
    cache_dir: Optional[str] = field(default=None, metadata={"help": "Where to store what is downloaded"})


def main():
    parser = HfArgumentParser((ModelArguments, TrainingArguments))
    if len(sys.argv) == 2 and sys.argv[1].endswith(".json"):
        model_args, training_args = parser.parse_json_file(json_file=sys.argv[1])
    elif len(sys.argv) == 2 and sys.argv[1].endswith(".yaml"):
        model_args, training_args = parser.parse_yaml_file(sys.argv[1])
    else:
        model_args, training_args = parser.parse_args_into_dataclasses()
    data = load_dataset("wikitext", cache_dir=model_args.cache_dir)
    model = AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path, cache_dir=model_args.cache_dir)


if __name__ == "__main__":
    main()
"""

# Paths of the share and of the home directory, and what lies there before each run.
_SHARE_FILES = {
    "job/train.py": _LOADS_ALL,
    "job/finetune.py": _LOADS_ALL,
    "job/src/train.py": _LOADS_ALL,
    "job/scripts/train_sft.py": _LOADS_ALL,
    "job/models_only.py": _LOADS_MODELS,
    "job/two_hubs.py": _TWO_HUBS,
    "job/own/run_sft.py": _REQUIRED,
    "job/extract.py": _FEATURES,
    "job/main.py": _VARIABLES_ONLY,
    "job/eval.py": _VARIABLES_ONLY,
    "job/own_home.py": _OWN_HOME,
    "job/own_cache.py": _OWN_CACHE,
    "job/own_default.py": _OWN_DEFAULT,
    "job/check_gpu.py": _NO_CACHES,
    "job/hf_args.py": _HF_PARSER,
    "job/executable.py": "#!/usr/bin/env python3\n" + _LOADS_ALL,
    "job/extract_executable.py": "#!/usr/bin/env python3\n" + _FEATURES,
    "job/models_only_executable.py": "#!/usr/bin/env python3\n" + _LOADS_MODELS,
    "job/hf_args_executable.py": "#!/usr/bin/env python3\n" + _HF_PARSER,
    "job/image_hub.py": _IMAGE_HUB,
    "job/recipes/sft.yaml": f"model_name_or_path: m\ncache_dir: {SHARE}/hf\noutput_dir: out\n",
    "job/recipes/nested.yaml": f"data:\n  cache_dir: {SHARE}/hf\n",
    "job/two_nodes": "node1 slots=8\nnode2 slots=8\n",
    "job/offline.sh": "export HF_DATASETS_OFFLINE=1\n",
    "job/offline_job.sh": "#!/bin/bash\nexport HF_DATASETS_OFFLINE=1\npython main.py\n",
    "job/extra.sh": "#!/bin/bash\npython train.py $EXTRA\n",
    "job/run_clm.py": _HF_PARSER,
    "job/run_mlm.py": _HF_PARSER,
    "job/examples/pytorch/language-modeling/run_mlm.py": _HF_PARSER,
    "job/src/train_bash.py": "from llamafactory.train.tuner import run_exp\n\nrun_exp()\n",
    "job/pkg/__init__.py": "",
    "job/pkg/train.py": _LOADS_ALL,
    "job/sft.json": json.dumps({"cache_dir": f"{SHARE}/hf", "output_dir": "out"}),
    "job/sft.yaml": f"stage: sft\nmodel_name_or_path: m\ncache_dir: {SHARE}/hf\noutput_dir: out\n",
    "job/plain.yaml": "stage: sft\nmodel_name_or_path: m\noutput_dir: out\n",
    "job/axolotl.yml": f"base_model: m\ndataset_prepared_path: {SHARE}/prepared\n",
    "job/derived.yaml": f"cache_dir: {SHARE}/hf\nlocal_run_dir: ${{cache_dir}}/runs\n",
    "job/conf/derived.yaml": f"cache_dir: {SHARE}/hf\nlocal_run_dir: ${{cache_dir}}/runs\n",
    "job/conf/config.yaml": f"data:\n  cache_dir: {SHARE}/hf\n",
    "job/ds_config.json": "{}",
    "job/accelerate.yaml": "num_machines: 1\n",
    "job/fsdp.yaml": "distributed_type: FSDP\n",
    "job/hostfile": "",
    "job/train.args": f"--cache_dir\n{SHARE}/hf\n",
    "job/.env": f"HF_HOME={SHARE}/hf\nHF_DATASETS_CACHE={SHARE}/hf/datasets\n",
    "job/env.sh": f"export HF_HOME={SHARE}/hf\nexport HF_DATASETS_CACHE=$HF_HOME/datasets\n",
    "job/job.sh": f"#!/bin/bash\npython train.py --cache_dir {SHARE}/hf --output_dir out\n",
    "job/job.sbatch": f"#!/bin/bash\n#SBATCH -N 2\nexport HF_HOME={SHARE}/hf\nsrun python main.py\n",
    "job/isolated.sh": f"#!/bin/bash\npython -I train.py --cache_dir {SHARE}/hf\n",
    "job/plain.sh": "#!/bin/bash\npython check_gpu.py\n",
    "venv/bin/activate": f"VIRTUAL_ENV={SHARE}/venv\nexport VIRTUAL_ENV\nPS1=\n",
    "features/features_train.pt": "a tensor",
    "saved/train/state.json": "{}",
    "saved/train/data-00000-of-00001.arrow": "rows",
    "saved/dataset_dict.json": "{}",
    "checkpoints/checkpoint-100/model.safetensors": "weights",
    "hf/datasets/json/default/0.0.0/abc/dataset_info.json": "{}",
    "hf/datasets/json/default/0.0.0/abc/json-train.arrow": "rows",
    "models/models--gpt2/refs/main": "abc",
    "home/me/.bashrc": "",
}
_CONDA = 'conda() { if [ "$1" = run ]; then command conda "$@"; fi; }\n'
_HOME_FILES = {
    ".bashrc": _CONDA,
    ".bash_profile": f"export PATH={PROGRAMS}:{ROOT}/bin:$PATH\n",
    "miniconda3/etc/profile.d/conda.sh": _CONDA,
    "miniconda3/bin/activate": "CONDA_PREFIX=x\n",
    ".config/hf.env": f"export HF_HOME={SHARE}/hf\n",
}


@dataclass(frozen=True)
class Start:
    """One program start, as its process saw it."""

    argv: tuple[str, ...]
    environment: dict[str, str]
    directory: str
    settings: dict[str, str] = field(default_factory=dict)  # configuration files that its words name, and their text

    @property
    def name(self) -> str:
        return os.path.basename(self.argv[0])


@dataclass(frozen=True)
class Ran:
    starts: list[Start]
    exit_code: int
    stdout: str
    stderr: str
    made: list[str]  # on the local disk


def _environment_of(entries: list[str]) -> dict[str, str]:
    return {name: value for name, _, value in (entry.partition("=") for entry in entries)}


def _settings_of(argv: list[str], directory: str) -> dict[str, str]:
    """What a program would read: JSON, YAML, `@file`, and Hydra's configuration."""
    options = dict(zip(argv, argv[1:]))
    names = [word.lstrip("@") for word in argv if word.endswith((".json", ".yaml", ".yml", ".args"))]
    if "--config-name" in options:
        names.append(os.path.join(options.get("--config-path", "."), options["--config-name"] + ".yaml"))
    paths = [Path(directory, name) for name in names]
    return {str(path): path.read_text(errors="replace") for path in paths if path.is_file()}


def _fill(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if name.endswith((".sh", ".py")) else 0o644)


def _empty(directory: Path) -> None:
    for entry in directory.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


class World:
    """Exists once its constructor returns. `close` ends the server of the share."""

    def __init__(self, binary: Path, seconds: int = 0) -> None:
        for directory in (SHARE, _BACKING, HOME, SCRATCH, PROGRAMS):
            directory.mkdir(parents=True)
        standin = ROOT / "standin"
        command = ["gcc", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f'-DPROGRAMS="{PROGRAMS}"']
        subprocess.run([*command, "-o", standin, _SOURCE / "standin.c"], check=True, timeout=60)
        for name in _NAMES:
            (PROGRAMS / name).symlink_to(standin)
        # Beside the others, but none of them: `sharefs` in a launch line is the program under test.
        # The machine's own state is not ours to write: changes are journaled there.
        mount_tmpfs(Path("/var/lib"))
        # Where sharefs lies that is installed: other nodes have it, too.
        mount_tmpfs(_INSTALLED.parent)
        _INSTALLED.touch()
        bind_mount(binary, _INSTALLED)
        shutil.copytree(_SOURCE.parents[1] / "cachefix" / "guard", _INSTALLED.parent / "share" / "sharefs" / "guard")
        (ROOT / "bin").mkdir()
        self.use()
        CONFIG.write_text(f"version: 1\ncaches:\n  local: {LOCAL}\n  min_free: 1MiB\n")
        self._server = mount_share(SHARE, _BACKING, seconds)

    def use(self, binary: Path = _INSTALLED) -> None:
        """From now on this is `sharefs`."""
        name = ROOT / "bin" / "sharefs"
        name.unlink(missing_ok=True)
        name.symlink_to(binary)

    def close(self) -> None:
        os.kill(self._server, 9)
        os.waitpid(self._server, 0)

    def environment(self, more: dict[str, str]) -> dict[str, str]:
        path = f"{PROGRAMS}:{ROOT}/bin:/usr/local/bin:/usr/bin:/bin"
        return {
            "PATH": path, "HOME": str(HOME), "USER": "me", "LOGNAME": "me", "LANG": "C.UTF-8", "SHELL": "/bin/bash",
            "SHAREFS_CONFIG": str(CONFIG), "BASH_FUNC_module%%": "() { :\n}", **more,
        }  # fmt: skip

    def _reset(self, files: dict[str, str]) -> None:
        for directory in (_BACKING, HOME, LOCAL, SCRATCH):
            _empty(directory)
        _fill(_BACKING, _SHARE_FILES | files)
        _fill(HOME, _HOME_FILES)
        for environment in (_BACKING / "venv", HOME / "miniconda3" / "envs" / "llm"):
            (environment / "bin").mkdir(parents=True, exist_ok=True)
            for name in ("python", "torchrun", "accelerate", "deepspeed"):
                (environment / "bin" / name).symlink_to(ROOT / "standin")
        _STARTS.unlink(missing_ok=True)

    def run(self, command: list[str], environment: dict[str, str], files: dict[str, str]) -> Ran:
        """In a world as new, with these files in the job's directory as well."""
        self._reset({f"job/{name}": text for name, text in files.items()})
        return self.run_again(command, environment)

    def run_again(self, command: list[str], environment: dict[str, str]) -> Ran:
        """In the world as the last run left it."""
        settings: dict[str, Any] = {"cwd": JOB, "env": self.environment(environment), "timeout": _TIMEOUT}
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, **settings
        )
        logs = "".join(path.read_text(errors="replace") for path in sorted((_BACKING / "job").glob("*log")))
        starts = []
        if _STARTS.exists():
            for line in _STARTS.read_text(errors="replace").splitlines():
                one = json.loads(line)
                settings = _settings_of(one["argv"], one["directory"])
                starts.append(
                    Start(tuple(one["argv"]), _environment_of(one["environment"]), one["directory"], settings)
                )
            _STARTS.unlink()
        made = [str(path) for path in LOCAL.iterdir()]
        # `> log 2>&1` takes the messages, too.
        return Ran(starts, done.returncode, done.stdout, done.stderr + logs, made)
