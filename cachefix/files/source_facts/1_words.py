# What a Python source shows about its own option `cache_dir`, as a line of JSON. The source comes on stdin and is only
# parsed. The files of this directory are one program, in the order of their names, for Python 3.6 and later; `_ast`
# instead of `ast`, and no `json`: importing those takes longer than all of this.
import _ast, gc, sys
gc.disable()
# What an expression may hold, as bits: the option's value, a path made of it, a dict with it as `cache_dir`, something
# with it inside, the namespace of all options, something else, a path that is certainly local.
V, D, K, C, N, O, L = 1, 2, 4, 8, 16, 32, 64
TAINT = V | D | K | C
def words(text): return frozenset(text.split())
SPELLINGS = words("--cache_dir --cache-dir -cache_dir")
PARSERS = words("parse_args parse_known_args parse_args_into_dataclasses parse_json_file parse_yaml_file parse_dict"
                " parse_args_and_config parse_intermixed_args parse_known_intermixed_args")
CLIS = words("Fire run cli CLI auto_cli")
# cache_dir's place among the positional arguments (datasets 1.x to 4.x, evaluate, huggingface_hub; -1: keyword only).
DATASETS = {"load_dataset": 5, "load_dataset_builder": 4}
READERS = {"from_csv": 3, "from_json": 3, "from_parquet": 3, "from_text": 3, "from_sql": 3, "from_generator": 2,
           "from_spark": 4}
HUB = words("hf_hub_download snapshot_download cached_file cached_path")
MODEL_METRICS = words("bertscore bleurt comet frugalscore mauve perplexity toxicity regard")
# What such a name says is loaded comes from a hub, by code of another file: from which directory, nobody knows here.
MODEL_WORDS = words("bert whisper clip embed rerank encoder")
MAKERS = ("load", "create", "build", "get", "init", "make", "from_")
NO_MODELS = ("Args", "Arguments", "Config", "Trainer", "Dataset", "Error", "Callback", "Checkpoint", "args", "config")
MODEL_DIRECTORIES = words("cache_folder download_root")
MAY_BE_HUB = words("load_lora_weights load_textual_inversion load_ip_adapter from_single_file")
ELSEWHERE = words("create_model create_model_and_transforms create_model_from_pretrained")
SAME_PATH = words("str Path PurePath expanduser expandvars abspath realpath normpath fspath to_absolute_path strip"
                  " rstrip lstrip resolve absolute as_posix")
# The directory is made or looked for, not used: another one does as well.
MAKES = words("makedirs mkdir exists is_dir isdir")
LOGS = words("print pprint rprint echo secho isinstance issubclass len type bool repr hasattr id hash callable info"
             " debug warning warn error critical exception fatal log warning_once print_rank_0 startswith endswith write writelines")
RECORDS = words("dump dumps safe_dump save save_json init init_trackers update add_text add_hparams log_params write"
                " log_hyperparams save_hyperparameters set_defaults add_argument format append extend setattr"
                " register_for_checkpointing main_process_first finish")
SAME = words("vars asdict deepcopy copy Namespace SimpleNamespace EasyDict edict AttrDict DictConfig to_container merge"
             " structured to_object to_dict model_dump dict resolve unwrap")
HOLDERS = words("list tuple set sorted zip enumerate reversed filter chain iter next product items values array")
LIBRARIES = words("transformers trl peft accelerate torch datasets diffusers deepspeed wandb evaluate huggingface_hub"
                  " sentence_transformers argparse json yaml logging pprint copy os sys random numpy omegaconf pickle"
                  " dataclasses tensorboard tensorboardX bitsandbytes lightning pytorch_lightning click typer fire"
                  " unsloth optimum safetensors pathlib time datetime math mlflow absl tqdm functools typing collections")
DIRECTORIES = ("output_dir", "save_dir", "input_dir", "log_dir", "logging_dir", "checkpoint_dir", "ckpt_dir", "out_dir",
               "save_path", "save_directory", "output_path", "output_path_or_dir", "resume_from_checkpoint",
               "last_checkpoint")

def kids(node):
    for field in node._fields:
        child = getattr(node, field, None)
        if isinstance(child, list):
            for one in child:
                if isinstance(one, _ast.AST):
                    yield one
        elif isinstance(child, _ast.AST):
            yield child

def below(nodes):  # all nodes of these trees
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        stack.extend(kids(node))

def kind(node):
    return type(node).__name__

def text(node):  # of a string; before Python 3.8 a node of its own
    value = getattr(node, "s", None) if kind(node) == "Str" else getattr(node, "value", None) \
        if kind(node) == "Constant" else None
    return value if isinstance(value, str) else None

def is_none(node):
    return kind(node) in ("Constant", "NameConstant") and node.value is None

def key_of(node):  # of a subscript; before Python 3.9 inside of an Index
    return text(node.slice.value if kind(node.slice) == "Index" else node.slice)

def dotted(node):  # `a.b["c"].d` -> "a.b.c.d"
    parts = []
    while True:
        k = kind(node)
        if k == "Attribute":
            parts.append(node.attr)
        elif k == "Subscript" and key_of(node) is not None:
            parts.append(key_of(node))
        elif k == "Name":
            parts.append(node.id)
            return ".".join(reversed(parts))
        else:
            return None
        node = node.value

def last_name(node):
    return node.attr if kind(node) == "Attribute" else node.id if kind(node) == "Name" else ""

def decorator(node):  # its name, with arguments or without
    return last_name(node.func if kind(node) == "Call" else node)

def union(all_bits):
    found = 0
    for bits in all_bits:
        found |= bits
    return found

def loads_model(name, top):  # a call of this name, imported from there
    spelled = (top + "." + name).lower()
    maker = name[:1].isupper() or name.startswith(MAKERS)
    return any(w in top.lower() for w in MODEL_WORDS) or maker and not name.endswith(NO_MODELS) and any(
        w in spelled for w in list(MODEL_WORDS) + ["model"])

def inside(bits):  # of what has something with these bits in it
    return (C if bits & TAINT else 0) | bits & (D | N)
