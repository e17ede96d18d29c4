#include "cachefix/rules/rules.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <fnmatch.h>

namespace sharefs::cachefix {
namespace {

using enum CacheClass;

constexpr std::string_view k_race =
    "every node builds the dataset cache in one fixed `.incomplete` directory and deletes the other's";

// The first row that matches is the framework. Order: the more specific first.
constexpr Framework k_frameworks[] = {
    {.name = "hub-client",
     .programs = "hf huggingface-cli modelscope modelscope-hub ms-hub kaggle openxlab gdown",
     .modules = "huggingface_hub.cli.hf huggingface_hub.commands.huggingface_cli modelscope.cli.cli "
                "modelscope_hub.cli.main kaggle kaggle.cli openxlab.cli gdown",
     .keeps_caches = true,
     .source = "console scripts of huggingface_hub 0.36 and 2.4, modelscope 1.29, modelscope_hub 0.5, kaggle 2.2, "
               "openxlab 0.1, gdown 6.5: they download to the place that is asked, and none of their verbs trains"},
    {.name = "hub-client",
     .programs = "ms",
     .verbs = "download upload cache clear-cache scan-cache",
     .keeps_caches = true,
     .source = "modelscope_hub/cli/main.py 0.5: `modelscope` by a name that others may have"},
    {.name = "hub-client",
     .programs = "tune litgpt",
     .verbs = "download cp ls convert_to_litgpt convert_from_litgpt convert_pretrained_checkpoint merge_lora",
     .keeps_caches = true,
     .source = "torchtune/_cli/tune.py, litgpt/__main__.py: model files are fetched, copied and converted"},
    {.name = "installer",
     .modules = "pip uv pipx poetry pdm virtualenv venv build ensurepip",
     .keeps_caches = true,
     .source = "python -m pip --help: a cache of packages, written by renames"},
    {.name = "flagembedding",
     .modules = "FlagEmbedding.finetune.* FlagEmbedding.evaluation.* FlagEmbedding.baai_general_embedding.* "
                "FlagEmbedding.reranker.*",
     .source = "FlagEmbedding/abc/finetune/*/Abs*.py, FlagEmbedding/abc/evaluation/arguments.py 1.4"},
    {.name = "models-only",
     .programs = "lm_eval lm-eval vllm sglang fairseq-*",
     .modules = "open_clip_train.main lm_eval lm_eval.__main__ vllm.entrypoints.* vllm.benchmarks.* "
                "sglang.launch_server sglang.cli.main sglang.bench_* sglang.benchmark.* sglang.compile_deep_gemm "
                "verl.trainer.* verl.experimental.* fairseq_cli.* fastchat.train.* fastchat.serve.* llava.train.*",
     .files = "open_clip_train/main.py fairseq_cli/train.py fairseq_cli/hydra_train.py fastchat/train/train.py "
              "fastchat/train/train_mem.py fastchat/train/train_lora.py llava/train/train.py llava/train/train_mem.py "
              "llava/train/train_xformers.py",
     .source = "open_clip_train/params.py 3.3, lm_eval/models/huggingface.py 0.4, vllm/config/load.py, sglang 0.5, "
               "verl/utils/dataset/rl_dataset.py 0.9, fairseq/options.py 0.12, FastChat and LLaVA train.py: their "
               "options name places of models; datasets are loaded without them"},
    {.name = "levanter",
     .modules = "levanter.main.*",
     .files = "levanter/main/train_lm.py levanter/main/lora_lm.py",
     .source = "levanter#409, #400"},
    {.name = "axolotl",
     .programs = "axolotl",
     .modules = "axolotl.cli.*",
     .files = "axolotl/cli/train.py scripts/finetune.py",
     .source = "axolotl src/axolotl/utils/data"},
};

// Before a row with a framework's name comes none with "*" about the same flag.
constexpr FlagRule k_flag_rules[] = {
    {"models-only.cache_dir", "models-only flagembedding",
     "--cache_dir --model_cache_dir --download_dir --data.cache_dir --local_cache_path --task.local_cache_path",
     read_mostly, "only models are read from it; every node would download its own copy",
     "see the framework's source; FlagEmbedding has --cache_path for datasets"},
    {"hub-client.cache_dir", "hub-client", "--cache_dir --local_dir --output_dir", read_mostly,
     "it is asked to fill this place", "docs/cachefix.md"},
    {"flagembedding.cache_path", "flagembedding", "--cache_path", node_local, k_race,
     "FlagEmbedding/abc/finetune/embedder/AbsDataset.py: load_dataset('json', cache_dir=cache_path)"},
    {"levanter.cache_dir", "levanter", "--data.cache_dir --cache_dir", shared,
     "one cache is built for all nodes together", "levanter#409, #400"},
    {"rank-0", "*", "--data-cache-path --index_mapping_dir --packing_cache", shared,
     "only one rank builds it; the other nodes wait for it there",
     "Megatron-LM megatron/core/datasets, NeMo nlp/data/language_modeling, ms-swift#4462"},
    {"axolotl.dataset_prepared_path", "axolotl", "--dataset_prepared_path", node_local,
     "every node prepares the dataset there behind a lock, a flag and a counter", "axolotl src/axolotl/utils/data",
     true},
    {"prepared", "*",
     "--dataset_prepared_path --tokenized_path --preprocessed_path --tokenized_dir --cached_dataset "
     "--processed_data_cache_dir",
     shared, "prepared data, written once and read by all nodes",
     "axolotl; LLaMA-Factory src/llamafactory/data/loader.py; ms-swift 4.6 --cached_dataset; scripts of public "
     "repositories: save_to_disk(data_args.preprocessed_path) in one, load_from_disk in another"},
    {"data_cache_dir", "*", "--data_cache_dir --dataset_cache_dir", node_local, k_race,
     "tevatron 0.1, distil-whisper: load_dataset(..., cache_dir=data_args.data_cache_dir); Chinese-LLaMA-Alpaca: "
     "datasets and what is made of them below it, by the first process of every node"},
    {"output", "*",
     "--output_dir --save_dir --save --save_path --checkpoint_dir --ckpt_dir --ckpt_path --logging_dir --log_dir "
     "--logs_dir --tensorboard_dir --export_dir --result_dir --results_dir",
     never, "output path", "docs/cachefix.md"},
    {"input", "*",
     "--load --load_path --resume_from_checkpoint --dataset_dir --media_dir --data_dir --data_path --image_folder "
     "--train_file --validation_file --test_file --train_data_dir --hostfile --deepspeed --deepspeed_config "
     "--deepspeed_config_file --config --config_file --model_name_or_path --model --adapter_name_or_path "
     "--tokenizer_name --tokenizer_name_or_path",
     never, "input path", "docs/cachefix.md"},
    {"cache_dir", "*", "--cache_dir", mixed, "datasets are built in it by every node at once", "docs/cachefix.md"},
};

constexpr std::string_view k_races = "the processes of several nodes write it at the same time";
constexpr std::string_view k_models = "models are written once and read by all nodes: shared is right";
constexpr std::string_view k_hf_modules =
    "every node copies trust_remote_code modules there at once (transformers#22537, #27421)";

constexpr VariableRule k_variables[] = {
    // Datasets and code of models: the guard builds them where it gets hold of the program, and publishes them.
    {"HF_DATASETS_CACHE", mixed, "$HF_HOME/datasets", k_race, "datasets/src/datasets/config.py"},
    {"HF_DATASETS_DOWNLOADED_DATASETS_PATH", mixed, "", k_race, "datasets/src/datasets/config.py"},
    {"HF_DATASETS_EXTRACTED_DATASETS_PATH", mixed, "", k_race, "datasets/src/datasets/config.py"},
    {"HF_MODULES_CACHE", mixed, "$HF_HOME/modules", k_hf_modules, "datasets/src/datasets/config.py"},
    // Chunks of the hub.
    {"HF_XET_CACHE", node_local, "$HF_HOME/xet", "a chunk cache of one node", "huggingface_hub/constants.py"},
    // Kernels and what compiles them.
    {"TRITON_CACHE_DIR", node_local, "$TRITON_HOME/.triton/cache",
     "kernels are compiled there: stale handles and EBUSY on shared storage (triton#2688)", "triton/runtime/cache.py",
     Holds::code},
    {"TRITON_HOME", node_local, "", k_races, "triton/runtime/cache.py", Holds::code},
    {"TORCH_EXTENSIONS_DIR", node_local, "$XDG_CACHE_HOME/torch_extensions",
     "its lock file waits for ever when a node died with it", "torch/utils/cpp_extension.py", Holds::code},
    {"TORCHINDUCTOR_CACHE_DIR", node_local, "$TMPDIR/torchinductor", k_races,
     "torch/_inductor/runtime/cache_dir_utils.py", Holds::code},
    {"PYTORCH_KERNEL_CACHE_PATH", node_local, "$XDG_CACHE_HOME/torch/kernels", k_races,
     "aten/src/ATen/native/cuda/jit_utils.cpp", Holds::code},
    {"VLLM_CACHE_ROOT", node_local, "$XDG_CACHE_HOME/vllm", k_races, "vllm#24601", Holds::code},
    {"SGLANG_CACHE_DIR", node_local, "~/.cache/sglang",
     "kernels, and what was measured on the GPUs of one node, in files that all nodes name alike",
     "sglang/srt/environ.py 0.5; SGLANG_JIT_CACHE_DIR is content-addressed and may be shared", Holds::code},
    {"SGLANG_DG_CACHE_DIR", node_local, "", k_races,
     "sglang/srt/layers/deep_gemm_wrapper 0.5: goes before DG_JIT_CACHE_DIR; the default is below SGLANG_CACHE_DIR",
     Holds::code},
    {"FLASHINFER_WORKSPACE_BASE", node_local, "~", k_races, "flashinfer/jit/env.py", Holds::code},
    {"DG_JIT_CACHE_DIR", node_local, "~/.deep_gemm", k_races, "DeepGEMM/jit", Holds::code},
    {"EP_JIT_CACHE_DIR", node_local, "~/.deep_ep", k_races,
     "DeepEP setup.py and csrc/jit: the name is made of the "
     "includes, not of their content",
     Holds::code},
    {"TVM_FFI_CACHE_DIR", node_local, "~/.cache/tvm-ffi", "ranks read a library that another one is still writing",
     "tvm_ffi/cpp/extension.py", Holds::code},
    {"TILELANG_CACHE_DIR", node_local, "~/.tilelang/cache", k_races, "tilelang/env.py", Holds::code},
    {"CUTE_DSL_CACHE_DIR", node_local, "$TMPDIR/cutlass_python_cache", k_races, "nvidia-cutlass-dsl", Holds::code},
    {"AITER_JIT_DIR", node_local, "", k_races, "aiter/jit/core.py; the default is the package", Holds::code},
    {"CUPY_CACHE_DIR", node_local, "~/.cupy/kernel_cache", k_races, "cupy/cuda/compiler.py", Holds::code},
    {"MIOPEN_USER_DB_PATH", node_local, "", k_races, "MIOpen documentation, finddb and user performance database"},
    {"MIOPEN_CUSTOM_CACHE_DIR", node_local, "", k_races, "MIOpen documentation, kernel cache", Holds::code},
    {"NUMBA_CACHE_DIR", node_local, "", k_races, "numba; the default is beside the source", Holds::code},
    {"CUDA_CACHE_PATH", node_local, "~/.nv/ComputeCache", k_races, "CUDA programming guide", Holds::code},
    // Others of one node.
    {"OUTLINES_CACHE_DIR", node_local, "$XDG_CACHE_HOME/outlines", "an SQLite database, which needs locks that exclude",
     "outlines/caching.py"},
    {"MPLCONFIGDIR", node_local, "", k_races, "matplotlib; the default also holds matplotlibrc and is left"},
    {"PIP_CACHE_DIR", node_local, "$XDG_CACHE_HOME/pip", k_races, "pip"},
    {"WANDB_CACHE_DIR", node_local, "$XDG_CACHE_HOME/wandb", "a staging area of one node", "wandb/env.py"},
    {"WANDB_DATA_DIR", node_local, "$XDG_DATA_HOME/wandb", "a staging area of one node", "wandb/env.py"},
    // Shared on purpose.
    {"HF_HUB_CACHE", read_mostly, "", k_models, "huggingface_hub/constants.py"},
    {"HUGGINGFACE_HUB_CACHE", read_mostly, "", k_models, "huggingface_hub/constants.py"},
    {"HF_ASSETS_CACHE", read_mostly, "", k_models, "huggingface_hub/constants.py"},
    {"TRANSFORMERS_CACHE", read_mostly, "", k_models, "transformers/utils/hub.py"},
    {"PYTORCH_TRANSFORMERS_CACHE", read_mostly, "", k_models, "transformers/utils/hub.py"},
    {"PYTORCH_PRETRAINED_BERT_CACHE", read_mostly, "", k_models, "transformers/utils/hub.py"},
    {"DIFFUSERS_CACHE", read_mostly, "", k_models, "diffusers/utils/constants.py"},
    {"TORCH_HOME", read_mostly, "", k_models, "torch/hub.py"},
    {"NLTK_DATA", read_mostly, "", k_models, "nltk/data.py"},
    {"PYTORCH_FAIRSEQ_CACHE", read_mostly, "", k_models, "fairseq/file_utils.py 0.12"},
    {"MODELSCOPE_CACHE", read_mostly, "",
     "models are read there by all nodes, and datasets cannot be parted from them; ms-swift has rank 0 build them "
     "first",
     "modelscope/utils/config_ds.py 1.29 and 1.40; swift/utils/torch_utils.py 4.6: safe_ddp_context"},
    {"SGLANG_JIT_CACHE_DIR", read_mostly, "", "its files are named by their content", "sglang/srt/environ.py 0.5"},
    {"JAX_COMPILATION_CACHE_DIR", read_mostly, "", "made to be shared: only the first process writes it",
     "jax documentation, persistent compilation cache"},
    {"CCACHE_DIR", read_mostly, "", "made to be shared", "ccache manual"},
    {"SCCACHE_DIR", read_mostly, "", "made to be shared", "sccache README"},
    {"UV_CACHE_DIR", read_mostly, "", "written by renames, and linked from", "uv documentation, caching"},
    {"CONDA_PKGS_DIRS", read_mostly, "", "packages that environments are linked from", "conda documentation"},
    {"APPTAINER_CACHEDIR", read_mostly, "", "images", "apptainer documentation"},
    {"SINGULARITY_CACHEDIR", read_mostly, "", "images", "singularity documentation"},
    {"ENROOT_CACHE_PATH", read_mostly, "", "images", "enroot documentation"},
    {"HF_HOME", never, "", "it holds the token and the models", "huggingface_hub/constants.py"},
    {"XDG_CACHE_HOME", never, "", "other programs keep what they need there", "XDG base directory specification"},
    {"WANDB_DIR", never, "", "the data of the run", "wandb/env.py"},
    {"WANDB_CONFIG_DIR", never, "", "settings", "wandb/env.py"},
    {"WANDB_ARTIFACT_DIR", never, "", "artifacts of the run", "wandb/env.py"},
};

constexpr std::size_t k_shortest_prefix = 9; // "--cache_d": shorter ones are those of --cache_latents and the like

bool ends_with_file(std::string_view path, std::string_view list) {
  return any_word(list, ' ', [&](std::string_view file) {
    return path == file || (path.ends_with(file) && path[path.size() - file.size() - 1] == '/');
  });
}

bool matches(const UserRule& rule, const Program& program) {
  return rule.program.empty() || fnmatch(rule.program.c_str(), program.name.c_str(), 0) == 0 ||
         fnmatch(rule.program.c_str(), base_name(program.name).c_str(), 0) == 0;
}

std::optional<AppliedRule> table_rule(const Framework* framework, std::string_view flag) {
  const std::string_view name = framework == nullptr ? std::string_view{} : framework->name;
  for (const FlagRule& rule : k_flag_rules) {
    std::string_view spelled;
    const bool about = is_listed(name, rule.frameworks) && any_word(rule.flags, ' ', [&](std::string_view known) {
                         spelled = known;
                         return is_spelling_of(flag, known);
                       });
    if (about)
      return AppliedRule{std::string(rule.id), std::string(rule.reason), rule.cache_class, std::string(spelled),
                         rule.unless_prepared};
  }
  return std::nullopt;
}

} // namespace

const char* to_string(CacheClass value) {
  return name_in(std::array{"node-local", "mixed", "read-mostly", "shared", "never"}, value);
}

std::span<const VariableRule> variable_rules() {
  return k_variables;
}

std::string kept_variables(const std::vector<UserRule>& rules) {
  std::vector<std::string> names;
  for (const UserRule& rule : rules) // the first that matches counts
    if (const bool first = std::ranges::find(rules, rule.flag, &UserRule::flag)->origin == rule.origin;
        first && rule.program.empty() && !rule.local && !rule.flag.starts_with('-'))
      names.push_back(rule.flag);
  return join(names, ":");
}

const Framework* framework_of(const Program& program, const Argv& argv) {
  for (const Framework& framework : k_frameworks) {
    const bool named =
        (program.kind == ProgramKind::program && is_listed(base_name(program.name), framework.programs)) ||
        (program.kind == ProgramKind::module && is_listed(program.name, framework.modules)) ||
        ((program.kind == ProgramKind::file || program.kind == ProgramKind::program) &&
         ends_with_file(program.name, framework.files));
    const bool has_verb =
        framework.verbs.empty() || (program.begin < program.end && is_listed(argv[program.begin], framework.verbs));
    if (named && has_verb)
      return &framework;
  }
  return nullptr;
}

std::string underscored(std::string_view flag) {
  std::string out(flag);
  std::ranges::replace(std::span(out).subspan(std::min<std::size_t>(2, out.size())), '-', '_');
  return out;
}

bool is_spelling_of(std::string_view word, std::string_view flag) {
  const std::string spelled = underscored(word);
  const std::string wanted = underscored(flag);
  return spelled == wanted ||
         (spelled.size() >= k_shortest_prefix && wanted.starts_with(spelled) && wanted.starts_with("--cache_d"));
}

bool names_cache(std::string_view name) {
  std::string spelled = underscored(name);
  std::ranges::transform(spelled, spelled.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto has = [&](auto... parts) { return ((spelled.find(parts) != std::string::npos) || ...); };
  return has("cache_dir", "cache_path", "cache_folder", "cachedir", "hf_cache", "data_cache", "dataset_cache",
             "datasets_cache", "cache_home", "cache_root") &&
         !has("model", "hub", "token", "latent", "feature", "embed", "vae", "processed");
}

std::optional<AppliedRule> rule_for_flag(const Program& program, const Framework* framework, std::string_view flag,
                                         const std::vector<UserRule>& user) {
  auto known = table_rule(framework, flag);
  for (const UserRule& rule : user) {
    if (!is_spelling_of(flag, rule.flag) || !matches(rule, program))
      continue;
    const std::string does = rule.local ? "puts it on the node's own disk" : "keeps it";
    AppliedRule applied{"user", "a rule of yours (" + rule.origin + ") " + does, never, rule.flag, false, true};
    // Models stay where they are in this case too: hundreds of GB per node are not what was asked for.
    if (rule.local)
      applied.cache_class = known && known->cache_class == mixed ? mixed : node_local;
    return applied;
  }
  return known;
}

} // namespace sharefs::cachefix
