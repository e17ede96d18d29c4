#include "cachefix/rules/rules.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
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
    {.name = "air-bench",
     .modules = "FlagEmbedding.evaluation.air_bench",
     .source =
         "FlagEmbedding/evaluation/air_bench/runner.py: --cache_dir is its datasets', --model_cache_dir its models'"},
    {.name = "flagembedding",
     .modules = "FlagEmbedding.finetune.* FlagEmbedding.evaluation.* FlagEmbedding.baai_general_embedding.* "
                "FlagEmbedding.reranker.*",
     .source = "FlagEmbedding/abc/finetune/*/Abs*.py, FlagEmbedding/abc/evaluation/arguments.py 1.4; "
               "FlagEmbedding/baai_general_embedding/finetune/arguments.py 1.2"},
    {.name = "open_clip",
     .modules = "open_clip_train.main",
     .files = "open_clip_train/main.py",
     .source = "open_clip_train/params.py 3.3: cache path for model and tokenizer files"},
    {.name = "open_clip",
     .modules = "training.main",
     .files = "src/training/main.py training/main.py",
     .needs = "--train_data --imagenet_val --dataset_type --zeroshot_frequency",
     .imports = "open_clip",
     .source = "open_clip src/training/params.py; the flags are its own"},
    {.name = "lm_eval",
     .programs = "lm_eval lm-eval",
     .modules = "lm_eval lm_eval.__main__",
     .source = "lm_eval/models/huggingface.py 0.4: model arguments go to from_pretrained; tasks load their datasets "
               "without cache_dir"},
    {.name = "server",
     .programs = "vllm sglang",
     .modules = "vllm.entrypoints.* vllm.benchmarks.* sglang.launch_server sglang.cli.main sglang.bench_* "
                "sglang.benchmark.* sglang.compile_deep_gemm",
     .source =
         "vllm/config/load.py, sglang/srt/arg_groups/fields/model.py 0.5: --download-dir is the place of the weights"},
    {.name = "verl",
     .modules = "verl.trainer.* verl.experimental.*",
     .source = "verl/utils/dataset/rl_dataset.py 0.9: data.cache_dir holds copies of files; load_dataset is called "
               "without it"},
    {.name = "fairseq",
     .programs = "fairseq-*",
     .modules = "fairseq_cli.*",
     .files = "fairseq_cli/train.py fairseq_cli/hydra_train.py",
     .imports = "fairseq",
     .source = "fairseq/options.py 0.12: no option of its own is a cache, its datasets are files that are prepared "
               "before; a --cache_dir is of a task behind --user-dir"},
    {.name = "llamafactory",
     .programs = "llamafactory-cli lmf",
     .modules = "llamafactory.cli llamafactory.launcher llamafactory.train*",
     .files = "train_bash.py llamafactory/launcher.py llamafactory/cli.py",
     .imports = "llamafactory llmtuner glmtuner",
     .source = "LLaMA-Factory src/llamafactory/hparams/model_args.py: cache_dir defaults to None and goes to "
               "load_dataset and from_pretrained"},
    {.name = "llamafactory",
     .files = "src/train.py train.py",
     .needs = "--stage --finetuning_type",
     .imports = "llamafactory llmtuner glmtuner",
     .source = "LLaMA-Factory src/train.py; --stage and --finetuning_type are its own"},
    {.name = "fastchat",
     .modules = "fastchat.train.* fastchat.serve.*",
     .files = "fastchat/train/train.py fastchat/train/train_mem.py fastchat/train/train_lora.py "
              "fastchat/train/train_flant5.py fastchat/train/train_with_template.py fastchat/train/train_xformers.py "
              "fastchat/train/train_baichuan.py fastchat/train/train_yuan2.py",
     .imports = "fastchat",
     .source = "FastChat fastchat/train/train.py: only from_pretrained uses cache_dir"},
    {.name = "llava",
     .modules = "llava.train.*",
     .files = "llava/train/train.py llava/train/train_mem.py llava/train/train_xformers.py",
     .imports = "llava",
     .source = "LLaVA llava/train/train.py: only from_pretrained uses cache_dir"},
    {.name = "levanter",
     .modules = "levanter.main.*",
     .files = "levanter/main/train_lm.py levanter/main/lora_lm.py src/levanter/main/train_lm.py",
     .imports = "levanter",
     .source = "levanter#409, #400"},
    {.name = "megatron",
     .files = "pretrain_gpt.py pretrain_bert.py pretrain_t5.py pretrain_retro.py pretrain_vlm.py pretrain_mamba.py",
     .imports = "megatron",
     .source = "Megatron-LM megatron/training/arguments.py"},
    {.name = "nemo",
     .programs = "nemo",
     .modules = "nemo.collections.*",
     .files = "megatron_gpt_pretraining.py megatron_gpt_finetuning.py megatron_gpt_sft.py",
     .imports = "nemo",
     .source = "NeMo examples/nlp/language_modeling"},
    {.name = "ms-swift",
     .programs = "swift megatron",
     .modules = "swift.cli.*",
     .files = "swift/cli/sft.py swift/cli/pt.py swift/cli/rlhf.py",
     .imports = "swift",
     .source = "ms-swift#4462"},
    {.name = "axolotl",
     .programs = "axolotl",
     .modules = "axolotl.cli.*",
     .files = "axolotl/cli/train.py scripts/finetune.py",
     .imports = "axolotl",
     .source = "axolotl src/axolotl/utils/data"},
};

// Before a row with a framework's name comes none with "*" about the same flag.
constexpr FlagRule k_flag_rules[] = {
    {"llamafactory.cache_dir", "llamafactory", "--cache_dir", mixed, Transform::drop,
     "datasets are built in it by every node at once, models are only read from it",
     "section 1 and 2 of docs/cachefix.md"},
    {"fastchat.cache_dir", "fastchat llava", "--cache_dir", read_mostly, Transform::leave,
     "only models are read from it; every node would download its own copy", "FastChat fastchat/train/train.py"},
    {"hub-client.cache_dir", "hub-client", "--cache_dir --local_dir --output_dir", read_mostly, Transform::leave,
     "it is asked to fill this place", "section 1 of docs/cachefix.md"},
    {"flagembedding.cache_dir", "flagembedding", "--cache_dir", read_mostly, Transform::leave,
     "only models are read from it; datasets have --cache_path", "FlagEmbedding/abc/finetune/embedder/AbsRunner.py"},
    {"flagembedding.cache_path", "flagembedding", "--cache_path", node_local, Transform::in_place, k_race,
     "FlagEmbedding/abc/finetune/embedder/AbsDataset.py: load_dataset('json', cache_dir=cache_path)"},
    {"air-bench.model_cache_dir", "air-bench flagembedding", "--model_cache_dir", read_mostly, Transform::leave,
     "only models are read from it", "FlagEmbedding/evaluation/air_bench/runner.py"},
    {"open_clip.cache_dir", "open_clip", "--cache_dir", read_mostly, Transform::leave,
     "only model and tokenizer files are read from it", "open_clip_train/params.py"},
    {"lm_eval.model_args", "lm_eval", "--model_args -a", read_mostly, Transform::leave, "only models are read from it",
     "lm_eval/models/huggingface.py", "cache_dir download_dir"},
    {"lm_eval.cache_dir", "lm_eval", "--cache_dir --download_dir", read_mostly, Transform::leave,
     "only models are read from it",
     "lm_eval/_cli/run.py: --model_args pretrained=x cache_dir=y in words of their own"},
    {"server.download_dir", "server", "--download_dir", read_mostly, Transform::leave,
     "only models are read from it; every node would download its own copy",
     "vllm/config/load.py, sglang/srt/model_loader/weight_utils.py 0.5"},
    {"verl.cache_dir", "verl", "--data.cache_dir --cache_dir", read_mostly, Transform::leave,
     "one process of a job copies hdfs:// files to it; datasets are built in HF_DATASETS_CACHE",
     "verl/utils/fs.py 0.9: a lock in it, and another job would see a copy that is not complete where that does not "
     "exclude; verl/trainer/ppo: only the trainer's process makes the datasets"},
    {"fairseq.local_cache_path", "fairseq", "--local_cache_path --task.local_cache_path", read_mostly, Transform::leave,
     "copies of images; one that cannot be read is copied again, and then read where it comes from",
     "fairseq examples/data2vec: caching_loader in data/*.py"},
    {"levanter.cache_dir", "levanter", "--data.cache_dir --cache_dir", shared, Transform::leave,
     "one cache is built for all nodes together", "levanter#409, #400"},
    {"megatron.data_cache_path", "megatron *", "--data-cache-path", shared, Transform::leave,
     "only global rank 0 builds it; the other nodes wait for it there", "Megatron-LM megatron/core/datasets"},
    {"nemo.index_mapping_dir", "nemo *", "--index_mapping_dir", shared, Transform::leave,
     "only global rank 0 builds it; the other nodes wait for it there", "NeMo nlp/data/language_modeling"},
    {"ms-swift.packing_cache", "ms-swift *", "--packing_cache", shared, Transform::leave,
     "one node packs, the others read it there", "ms-swift#4462"},
    {"llamafactory.tokenized_path", "llamafactory *", "--tokenized_path", shared, Transform::leave,
     "written once, read by all nodes", "LLaMA-Factory src/llamafactory/data/loader.py"},
    {"axolotl.dataset_prepared_path", "axolotl", "--dataset_prepared_path", node_local, Transform::unless_prepared,
     "every node prepares the dataset there behind a lock, a flag and a counter", "axolotl src/axolotl/utils/data"},
    {"dataset_prepared_path", "*", "--dataset_prepared_path", shared, Transform::leave,
     "a prepared dataset is shared on purpose", "axolotl src/axolotl/utils/data"},
    {"preprocessed", "*", "--preprocessed_path --tokenized_dir --cached_dataset --processed_data_cache_dir", shared,
     Transform::leave, "prepared data, written once and read by all nodes",
     "scripts of public repositories: save_to_disk(data_args.preprocessed_path) in one, load_from_disk in another; "
     "ms-swift 4.6 --cached_dataset"},
    {"data_cache_dir", "*", "--data_cache_dir --dataset_cache_dir", node_local, Transform::in_place, k_race,
     "tevatron 0.1, distil-whisper: load_dataset(..., cache_dir=data_args.data_cache_dir); Chinese-LLaMA-Alpaca: "
     "datasets and what is made of them below it, by the first process of every node"},
    {"output", "*",
     "--output_dir --save_dir --save --save_path --checkpoint_dir --ckpt_dir --ckpt_path --logging_dir --log_dir "
     "--logs_dir --tensorboard_dir --export_dir --result_dir --results_dir",
     never, Transform::leave, "output path", "section 2 of docs/cachefix.md"},
    {"input", "*",
     "--load --load_path --resume_from_checkpoint --dataset_dir --media_dir --data_dir --data_path --image_folder "
     "--train_file --validation_file --test_file --train_data_dir --hostfile --deepspeed --deepspeed_config "
     "--deepspeed_config_file --config --config_file --model_name_or_path --model --adapter_name_or_path "
     "--tokenizer_name --tokenizer_name_or_path",
     never, Transform::leave, "input path", "section 2 of docs/cachefix.md"},
    {"cache_dir", "*", "--cache_dir", mixed, Transform::evidence, "cache moved to be safe",
     "section 2 of docs/cachefix.md"},
};

constexpr std::string_view k_races = "the processes of several nodes write it at the same time";
constexpr std::string_view k_models = "models are written once and read by all nodes: shared is right";
constexpr std::string_view k_hf_modules =
    "every node copies trust_remote_code modules there at once (transformers#22537, #27421)";

constexpr VariableRule k_variables[] = {
    {"HF_DATASETS_CACHE", node_local, "$HF_HOME/datasets", k_race, "datasets/src/datasets/config.py"},
    {"HF_DATASETS_DOWNLOADED_DATASETS_PATH", node_local, "", k_race, "datasets/src/datasets/config.py"},
    {"HF_DATASETS_EXTRACTED_DATASETS_PATH", node_local, "", k_race, "datasets/src/datasets/config.py"},
    {"HF_MODULES_CACHE", node_local, "$HF_HOME/modules", k_hf_modules, "datasets/src/datasets/config.py"},
    {"HF_XET_CACHE", node_local, "$HF_HOME/xet", "a chunk cache of one node", "huggingface_hub/constants.py"},
    {"TRITON_CACHE_DIR", node_local, "$TRITON_HOME/.triton/cache",
     "kernels are compiled there: stale handles and EBUSY on shared storage (triton#2688)", "triton/runtime/cache.py",
     Holds::code},
    {"TRITON_HOME", node_local, "", k_races, "triton/runtime/cache.py", Holds::code},
    {"TORCH_EXTENSIONS_DIR", node_local, "$XDG_CACHE_HOME/torch_extensions",
     "its lock file waits for ever when a node died with it", "torch/utils/cpp_extension.py", Holds::code},
    {"TORCHINDUCTOR_CACHE_DIR", node_local, "", k_races, "torch/_inductor; the default is under /tmp", Holds::code},
    {"VLLM_CACHE_ROOT", node_local, "$XDG_CACHE_HOME/vllm", k_races, "vllm#24601", Holds::code},
    {"SGLANG_CACHE_DIR", node_local, "~/.cache/sglang",
     "kernels, and what was measured on the GPUs of one node, in files that all nodes name alike",
     "sglang/srt/environ.py 0.5; SGLANG_JIT_CACHE_DIR is content-addressed and may be shared", Holds::code},
    {"SGLANG_DG_CACHE_DIR", node_local, "", k_races,
     "sglang/srt/layers/deep_gemm_wrapper 0.5: goes before DG_JIT_CACHE_DIR; the default is below SGLANG_CACHE_DIR",
     Holds::code},
    {"FLASHINFER_WORKSPACE_BASE", node_local, "~", k_races, "flashinfer/jit/env.py", Holds::code},
    {"DG_JIT_CACHE_DIR", node_local, "~/.deep_gemm", k_races, "DeepGEMM/jit", Holds::code},
    {"TILELANG_CACHE_DIR", node_local, "~/.tilelang/cache", k_races, "tilelang/env.py", Holds::code},
    {"NUMBA_CACHE_DIR", node_local, "", k_races, "numba; the default is beside the source", Holds::code},
    {"CUDA_CACHE_PATH", node_local, "~/.nv/ComputeCache", k_races, "CUDA programming guide", Holds::code},
    {"MPLCONFIGDIR", node_local, "", k_races, "matplotlib; the default also holds matplotlibrc and is left"},
    {"PIP_CACHE_DIR", node_local, "$XDG_CACHE_HOME/pip", k_races, "pip"},
    {"WANDB_CACHE_DIR", node_local, "$XDG_CACHE_HOME/wandb", "a staging area of one node", "wandb/env.py"},
    {"WANDB_DATA_DIR", node_local, "$XDG_DATA_HOME/wandb", "a staging area of one node", "wandb/env.py"},
    {"HF_HUB_CACHE", read_mostly, "", k_models, "huggingface_hub/constants.py"},
    {"HUGGINGFACE_HUB_CACHE", read_mostly, "", k_models, "huggingface_hub/constants.py"},
    {"TRANSFORMERS_CACHE", read_mostly, "", k_models, "transformers/utils/hub.py"},
    {"PYTORCH_TRANSFORMERS_CACHE", read_mostly, "", k_models, "transformers/utils/hub.py"},
    {"PYTORCH_PRETRAINED_BERT_CACHE", read_mostly, "", k_models, "transformers/utils/hub.py"},
    {"TORCH_HOME", read_mostly, "", k_models, "torch/hub.py"},
    {"NLTK_DATA", read_mostly, "", k_models, "nltk/data.py"},
    {"PYTORCH_FAIRSEQ_CACHE", read_mostly, "", k_models, "fairseq/file_utils.py 0.12"},
    {"MODELSCOPE_CACHE", read_mostly, "",
     "models are read there by all nodes, and datasets cannot be parted from them; ms-swift has rank 0 build them "
     "first",
     "modelscope/utils/config_ds.py 1.29 and 1.40: $MODELSCOPE_CACHE/datasets goes to load_dataset, and has no "
     "variable of its own; swift/utils/torch_utils.py 4.6: safe_ddp_context"},
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

bool has_flag(const Program& program, const Argv& argv, std::string_view flags) {
  return std::ranges::any_of(
      std::span(argv).subspan(program.begin, program.end - program.begin),
      [&](const auto& word) { return is_listed(underscored(word.substr(0, word.find('='))), flags); });
}

bool has_verb(const Program& program, const Argv& argv, std::string_view verbs) {
  return verbs.empty() || (program.begin < program.end && is_listed(argv[program.begin], verbs));
}

bool matches(const UserRule& rule, const Program& program) {
  return rule.program.empty() || fnmatch(rule.program.c_str(), program.name.c_str(), 0) == 0 ||
         fnmatch(rule.program.c_str(), base_name(program.name).c_str(), 0) == 0;
}

} // namespace

const char* to_string(CacheClass value) {
  return name_in(std::array{"node-local", "mixed", "read-mostly", "shared", "never"}, value);
}

std::span<const VariableRule> variable_rules() {
  return k_variables;
}

const Framework* framework_of(const Program& program, const Argv& argv) {
  for (const Framework& framework : k_frameworks) {
    const bool named =
        (program.kind == ProgramKind::program && is_listed(base_name(program.name), framework.programs)) ||
        (program.kind == ProgramKind::module && is_listed(program.name, framework.modules)) ||
        ((program.kind == ProgramKind::file || program.kind == ProgramKind::program) &&
         ends_with_file(program.name, framework.files));
    if (named && has_verb(program, argv, framework.verbs) &&
        (framework.needs.empty() || has_flag(program, argv, framework.needs)))
      return &framework;
  }
  return nullptr;
}

std::optional<Part> value_of_key(std::string_view list, std::string_view keys) {
  std::optional<Part> found;
  each_word(list, ',', [&](std::string_view pair) {
    const auto equals = pair.find('=');
    if (equals != std::string_view::npos && is_listed(pair.substr(0, equals), keys))
      found = Part{static_cast<std::size_t>(pair.data() - list.data()) + equals + 1, pair.size() - equals - 1};
  });
  return found;
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

bool may_be_short_for(std::string_view word, std::string_view flag) {
  const std::string spelled = underscored(word);
  const std::string wanted = underscored(flag);
  return spelled.size() >= 4 && wanted != spelled && wanted.starts_with(spelled) && !is_spelling_of(word, flag);
}

namespace {

std::optional<AppliedRule> table_rule(const Framework* framework, std::string_view flag) {
  const std::string_view name = framework == nullptr ? std::string_view{} : framework->name;
  for (const FlagRule& rule : k_flag_rules) {
    if (!is_listed(name, rule.frameworks))
      continue;
    std::string spelled;
    if (any_word(rule.flags, ' ', [&](std::string_view known) {
          spelled = known;
          return is_spelling_of(flag, known);
        }))
      return AppliedRule{std::string(rule.id),
                         std::string(rule.reason),
                         rule.cache_class,
                         rule.transform,
                         std::move(spelled),
                         false,
                         rule.keys};
  }
  return std::nullopt;
}

} // namespace

std::optional<AppliedRule> rule_for_flag(const Program& program, const Framework* framework, std::string_view flag,
                                         const std::vector<UserRule>& user) {
  auto known = table_rule(framework, flag);
  if (known && known->transform == Transform::evidence)
    known->reason = (program.kind == ProgramKind::file ? "unknown script " : "unknown program ") +
                    base_name(program.kind == ProgramKind::text ? "python -c" : program.name) + ": " + known->reason;
  for (const UserRule& rule : user) {
    if (!is_spelling_of(flag, rule.flag) || !matches(rule, program))
      continue;
    AppliedRule applied{"user", "a rule of yours (" + rule.origin + ") keeps it", never, Transform::leave, rule.flag,
                        true};
    if (rule.local) {
      applied.reason = "a rule of yours (" + rule.origin + ") puts it on the node's own disk";
      applied.cache_class = node_local;
      applied.transform = Transform::in_place;
      // Models stay where they are in this case too: hundreds of GB per node are not what was asked for.
      if (known && known->cache_class == mixed && known->transform != Transform::leave) {
        applied.cache_class = mixed;
        applied.transform = known->transform;
      }
    }
    return applied;
  }
  return known;
}

} // namespace sharefs::cachefix
