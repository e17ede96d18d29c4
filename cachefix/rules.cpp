#include "cachefix/rules.hpp"

#include "base/path.hpp"

#include <algorithm>
#include <fnmatch.h>

namespace sharefs::cachefix {
namespace {

using enum CacheClass;

constexpr std::string_view k_race =
    "every node builds the dataset cache in one fixed `.incomplete` directory and deletes the other's";

// The first row that matches is the framework. Order: the more specific first.
constexpr Framework k_frameworks[] = {
    {.name = "llamafactory",
     .programs = "llamafactory-cli lmf",
     .modules = "llamafactory.cli llamafactory.launcher llamafactory.train*",
     .files = "train_bash.py llamafactory/launcher.py llamafactory/cli.py",
     .source =
         "LLaMA-Factory src/llamafactory/hparams/model_args.py: cache_dir defaults to None and goes to load_dataset "
         "and from_pretrained"},
    {.name = "llamafactory",
     .files = "src/train.py train.py",
     .needs = "--stage --finetuning_type",
     .source = "LLaMA-Factory src/train.py; --stage and --finetuning_type are its own"},
    {.name = "fastchat",
     .modules = "fastchat.train.* fastchat.serve.*",
     .files = "fastchat/train/train.py fastchat/train/train_mem.py fastchat/train/train_lora.py "
              "fastchat/train/train_flant5.py fastchat/train/train_with_template.py fastchat/train/train_xformers.py "
              "fastchat/train/train_baichuan.py fastchat/train/train_yuan2.py",
     .source = "FastChat fastchat/train/train.py: only from_pretrained uses cache_dir"},
    {.name = "llava",
     .modules = "llava.train.*",
     .files = "llava/train/train.py llava/train/train_mem.py llava/train/train_xformers.py",
     .source = "LLaVA llava/train/train.py: only from_pretrained uses cache_dir"},
    {.name = "levanter",
     .modules = "levanter.main.*",
     .files = "levanter/main/train_lm.py levanter/main/lora_lm.py src/levanter/main/train_lm.py",
     .source = "levanter#409, #400"},
    {.name = "transformers",
     .files =
         "run_clm.py run_mlm.py run_plm.py run_fim.py run_glue.py run_xnli.py run_classification.py run_ner.py "
         "run_swag.py run_qa.py run_qa_beam_search.py run_seq2seq_qa.py run_summarization.py run_translation.py "
         "run_speech_recognition_ctc.py run_speech_recognition_ctc_adapter.py run_speech_recognition_seq2seq.py "
         "run_speech_recognition_ctc_bnb.py run_audio_classification.py run_image_classification.py run_mae.py "
         "run_mim.py run_clip.py run_semantic_segmentation.py run_object_detection.py run_instance_segmentation.py "
         "run_bart_dlm_flax.py run_clm_flax.py run_mlm_flax.py run_t5_mlm_flax.py run_dpo.py run_sft.py",
     .source =
         "transformers examples/pytorch: cache_dir defaults to None and goes to load_dataset and from_pretrained"},
    {.name = "diffusers",
     .files = "train_text_to_image.py train_text_to_image_lora.py train_text_to_image_sdxl.py "
              "train_text_to_image_lora_sdxl.py train_unconditional.py train_controlnet.py train_controlnet_sdxl.py "
              "train_instruct_pix2pix.py train_instruct_pix2pix_sdxl.py train_t2i_adapter_sdxl.py",
     .source = "diffusers examples: cache_dir goes to load_dataset only"},
    {.name = "megatron",
     .files = "pretrain_gpt.py pretrain_bert.py pretrain_t5.py pretrain_retro.py pretrain_vlm.py pretrain_mamba.py",
     .source = "Megatron-LM megatron/training/arguments.py"},
    {.name = "nemo",
     .programs = "nemo",
     .modules = "nemo.collections.*",
     .files = "megatron_gpt_pretraining.py megatron_gpt_finetuning.py megatron_gpt_sft.py",
     .source = "NeMo examples/nlp/language_modeling"},
    {.name = "ms-swift",
     .programs = "swift megatron",
     .modules = "swift.cli.*",
     .files = "swift/cli/sft.py swift/cli/pt.py swift/cli/rlhf.py",
     .source = "ms-swift#4462"},
    {.name = "axolotl",
     .programs = "axolotl",
     .modules = "axolotl.cli.*",
     .files = "axolotl/cli/train.py scripts/finetune.py",
     .source = "axolotl src/axolotl/utils/data"},
};

// Before a row with a framework's name comes none with "*" about the same flag.
constexpr FlagRule k_flag_rules[] = {
    {"llamafactory.cache_dir", "llamafactory", "--cache_dir", mixed, Transform::drop,
     "datasets are built in it by every node at once, models are only read from it",
     "section 1 and 2 of docs/cachefix.md"},
    {"transformers.cache_dir", "transformers", "--cache_dir", mixed, Transform::drop,
     "datasets are built in it by every node at once, models are only read from it",
     "section 1 and 2 of docs/cachefix.md"},
    {"diffusers.cache_dir", "diffusers", "--cache_dir", node_local, Transform::in_place, k_race, "diffusers examples"},
    {"fastchat.cache_dir", "fastchat llava", "--cache_dir", read_mostly, Transform::leave,
     "only models are read from it; every node would download its own copy", "FastChat fastchat/train/train.py"},
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
     "kernels are compiled there: stale handles and EBUSY on shared storage (triton#2688)", "triton/runtime/cache.py"},
    {"TRITON_HOME", node_local, "", k_races, "triton/runtime/cache.py"},
    {"TORCH_EXTENSIONS_DIR", node_local, "$XDG_CACHE_HOME/torch_extensions",
     "its lock file waits for ever when a node died with it", "torch/utils/cpp_extension.py"},
    {"TORCHINDUCTOR_CACHE_DIR", node_local, "", k_races, "torch/_inductor; the default is under /tmp"},
    {"VLLM_CACHE_ROOT", node_local, "$XDG_CACHE_HOME/vllm", k_races, "vllm#24601"},
    {"FLASHINFER_WORKSPACE_BASE", node_local, "~", k_races, "flashinfer/jit/env.py"},
    {"DG_JIT_CACHE_DIR", node_local, "~/.deep_gemm", k_races, "DeepGEMM/jit"},
    {"TILELANG_CACHE_DIR", node_local, "~/.tilelang/cache", k_races, "tilelang/env.py"},
    {"NUMBA_CACHE_DIR", node_local, "", k_races, "numba; the default is beside the source"},
    {"CUDA_CACHE_PATH", node_local, "~/.nv/ComputeCache", k_races, "CUDA programming guide"},
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
    {"MODELSCOPE_CACHE", read_mostly, "", k_models, "modelscope"},
    {"HF_HOME", never, "", "it holds the token and the models", "huggingface_hub/constants.py"},
    {"XDG_CACHE_HOME", never, "", "other programs keep what they need there", "XDG base directory specification"},
    {"WANDB_DIR", never, "", "the data of the run", "wandb/env.py"},
    {"WANDB_CONFIG_DIR", never, "", "settings", "wandb/env.py"},
    {"WANDB_ARTIFACT_DIR", never, "", "artifacts of the run", "wandb/env.py"},
};

constexpr std::size_t k_shortest_prefix = 9; // "--cache_d": shorter ones are those of --cache_latents and the like

bool ends_with_file(std::string_view path, std::string_view list) {
  bool found = false;
  each_word(list, ' ', [&](std::string_view file) {
    found = found || path == file ||
            (path.size() > file.size() && path.ends_with(file) && path[path.size() - file.size() - 1] == '/');
  });
  return found;
}

bool has_flag(const Program& program, const Argv& argv, std::string_view flags) {
  for (std::size_t i = program.begin; i < program.end; ++i) {
    const std::string word = argv[i].substr(0, argv[i].find('='));
    if (is_listed(underscored(word), flags))
      return true;
  }
  return false;
}

bool matches(const UserRule& rule, const Program& program) {
  return rule.program.empty() || fnmatch(rule.program.c_str(), program.name.c_str(), 0) == 0 ||
         fnmatch(rule.program.c_str(), base_name(program.name).c_str(), 0) == 0;
}

} // namespace

const char* to_string(CacheClass value) {
  static constexpr const char* k_names[] = {"node-local", "mixed", "read-mostly", "shared", "never"};
  return k_names[static_cast<std::size_t>(value)];
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
    if (named && (framework.needs.empty() || has_flag(program, argv, framework.needs)))
      return &framework;
  }
  return nullptr;
}

std::string underscored(std::string_view flag) {
  std::string out(flag);
  for (std::size_t i = 2; i < out.size(); ++i)
    if (out[i] == '-')
      out[i] = '_';
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
    std::optional<AppliedRule> found;
    each_word(rule.flags, ' ', [&](std::string_view known) {
      if (!found && is_spelling_of(flag, known))
        found = AppliedRule{std::string(rule.id), std::string(rule.reason), rule.cache_class,
                            rule.transform,       std::string(known),       false};
    });
    if (found)
      return found;
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
