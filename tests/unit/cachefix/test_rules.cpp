// The tables of cachefix/rules: what a program is, and what its flags mean.
#include "base/text.hpp"
#include "cachefix/rules/rules.hpp"
#include "given.hpp"
#include "support/catch.hpp"

#include <set>

using namespace sharefs;
using namespace sharefs::cachefix;
using test::words;

namespace {

const Framework* framework_of_line(const std::string& line) {
  const Argv argv = words(line);
  const Walk found = walk(argv, "/w");
  return found.programs.empty() ? nullptr : framework_of(found.programs[0], argv);
}

} // namespace

TEST_CASE("hub clients are told by program, module or verb, and keep their caches") {
  for (const std::string line :
       {"hf download x", "huggingface-cli download x --cache-dir /c", "modelscope download --model x",
        "modelscope --token x download --model y", "ms download x", "modelscope-hub cache scan",
        "python -m modelscope.cli.cli download --model x", "kaggle d", "python -m kaggle d", "python -m gdown x",
        "python -m huggingface_hub.cli.hf download x", "tune download x", "litgpt download x"}) {
    CAPTURE(line);
    const Framework* framework = framework_of_line(line);
    REQUIRE(framework != nullptr);
    CHECK(framework->keeps_caches);
  }
  for (const std::string line : {"ms train", "tune run x --config c", "litgpt pretrain x", "lm_eval --tasks x",
                                 "llamafactory-cli train x.yaml", "ms"}) {
    CAPTURE(line);
    const Framework* framework = framework_of_line(line);
    CHECK((framework == nullptr || !framework->keeps_caches));
  }
}

TEST_CASE("frameworks that are told by a file's name say what its source imports") {
  const Framework* factory = framework_of_line("python src/train.py --stage sft");
  REQUIRE(factory != nullptr);
  CHECK(factory->imports == "llamafactory llmtuner glmtuner");
  CHECK(framework_of_line("python src/train.py --lr 1") == nullptr);
  CHECK(framework_of_line("python pretrain_gpt.py")->imports == "megatron");
  CHECK(framework_of_line("python fastchat/train/train_mem.py")->imports == "fastchat");
  CHECK(framework_of_line("python src/training/main.py --train-data x")->imports == "open_clip");
}

TEST_CASE("flags of frameworks: where a rule leaves or moves, by what the program does with the value") {
  struct Row {
    std::string line, flag, id;
    CacheClass cache_class;
    Transform transform;
  };
  using enum CacheClass;
  const std::vector<Row> rows = {
      {"python -m FlagEmbedding.finetune.reranker.x", "--cache_dir", "flagembedding.cache_dir", read_mostly,
       Transform::leave},
      {"python -m FlagEmbedding.finetune.reranker.x", "--cache_path", "flagembedding.cache_path", node_local,
       Transform::in_place},
      {"python -m FlagEmbedding.evaluation.air_bench", "--cache_dir", "cache_dir", mixed, Transform::evidence},
      {"python -m open_clip_train.main", "--cache-dir", "open_clip.cache_dir", read_mostly, Transform::leave},
      {"vllm serve x", "--download-dir", "server.download_dir", read_mostly, Transform::leave},
      {"python -m sglang.bench_serving", "--download-dir", "server.download_dir", read_mostly, Transform::leave},
      {"sglang serve", "--download_dir", "server.download_dir", read_mostly, Transform::leave},
      {"python -m verl.trainer.main_ppo", "--data.cache_dir", "verl.cache_dir", read_mostly, Transform::leave},
      {"python -m verl.experimental.fully_async_policy.main", "--data.cache_dir", "verl.cache_dir", read_mostly,
       Transform::leave},
      {"fairseq-hydra-train", "--task.local_cache_path", "fairseq.local_cache_path", read_mostly, Transform::leave},
      {"fairseq-train /d", "--cache_dir", "cache_dir", mixed, Transform::evidence},
      {"lm_eval run", "--model_args", "lm_eval.model_args", read_mostly, Transform::leave},
      {"lm_eval run", "--cache_dir", "lm_eval.cache_dir", read_mostly, Transform::leave},
      {"python t.py", "--data-cache-dir", "data_cache_dir", node_local, Transform::in_place},
      {"python t.py", "--dataset_cache_dir", "data_cache_dir", node_local, Transform::in_place},
      {"python t.py", "--preprocessed_path", "preprocessed", shared, Transform::leave},
      {"hf download x", "--cache-dir", "hub-client.cache_dir", read_mostly, Transform::leave},
  };
  for (const Row& row : rows) {
    CAPTURE(row.line, row.flag);
    const Argv argv = words(row.line);
    const Walk found = walk(argv, "/w");
    const auto rule = rule_for_flag(found.programs.at(0), framework_of(found.programs.at(0), argv), row.flag, {});
    REQUIRE(rule);
    CHECK(rule->id == row.id);
    CHECK(rule->cache_class == row.cache_class);
    CHECK(rule->transform == row.transform);
  }
  const Argv eval = words("lm_eval run");
  const Program program = walk(eval, "/w").programs.at(0);
  CHECK(rule_for_flag(program, framework_of(program, eval), "--model_args", {})->keys == "cache_dir download_dir");
  CHECK_FALSE(rule_for_flag(walk(words("python t.py"), "/w").programs.at(0), nullptr, "--model_args", {}));
}

TEST_CASE("a key inside of a list") {
  CHECK(value_of_key("pretrained=a,cache_dir=/s/m,dtype=x", "cache_dir download_dir") == Part{23, 4});
  CHECK(value_of_key("cache_dir=/s", "cache_dir") == Part{10, 2});
  CHECK(value_of_key("download_dir=", "cache_dir download_dir") == Part{13, 0});
  CHECK(value_of_key("a=1,my_cache_dir=/s", "cache_dir") == std::nullopt);
  CHECK(value_of_key("cache_dir", "cache_dir") == std::nullopt);
  CHECK(value_of_key("", "cache_dir") == std::nullopt);
}

TEST_CASE("programs of Python that read its caches") {
  for (const std::string name : {"lm_eval", "axolotl", "swift", "vllm", "fairseq-train", "trl", "tune", "litgpt"}) {
    CAPTURE(name);
    CHECK(is_listed(name, python_programs()));
    CHECK(walk({"/opt/env/bin/" + name, "run"}, "/w").programs.at(0).python);
  }
  for (const std::string name : {"true", "bash", "ssh", "hf", "nvidia-smi", "mytool"}) {
    CAPTURE(name);
    CHECK_FALSE(is_listed(name, python_programs()));
  }
  CHECK_FALSE(walk(words("mytool --x"), "/w").programs.at(0).python);
}
