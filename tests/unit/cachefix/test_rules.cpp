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

constexpr std::string_view k_keys = "source programs modules verbs tail operands hosts assignments carries hostfile "
                                    "export containers options names keeps of input "
                                    "class flags reason unless default code guard";

const Row* framework_of_line(const std::string& line) {
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
    const Row* framework = framework_of_line(line);
    REQUIRE(framework != nullptr);
    CHECK(framework->has("keeps"));
  }
  for (const std::string line : {"ms train", "tune run x --config c", "litgpt pretrain x", "lm_eval --tasks x",
                                 "llamafactory-cli train x.yaml", "ms"}) {
    CAPTURE(line);
    const Row* framework = framework_of_line(line);
    CHECK((framework == nullptr || !framework->has("keeps")));
  }
}

TEST_CASE("flags of frameworks, by what the program does with the value") {
  using enum CacheClass;
  struct Row {
    std::string line, flag, id;
    CacheClass cache_class;
  };
  const std::vector<Row> rows = {
      {"python fastchat/train/train_mem.py", "--cache_dir", "models-only.cache_dir", read_mostly},
      {"python -m FlagEmbedding.finetune.embedder.x", "--cache-dir", "models-only.cache_dir", read_mostly},
      {"python -m FlagEmbedding.finetune.embedder.x", "--cache_path", "flagembedding.cache_path", node_local},
      {"vllm serve x", "--download-dir", "models-only.cache_dir", read_mostly},
      {"lm_eval run", "--cache_dir", "models-only.cache_dir", read_mostly},
      {"python pretrain_gpt.py", "--data-cache-path", "rank-0", shared},
      {"axolotl train x.yaml", "--dataset-prepared-path", "axolotl.dataset_prepared_path", node_local},
      {"python t.py", "--dataset_prepared_path", "prepared", shared},
      {"python t.py", "--data-cache-dir", "data_cache_dir", node_local},
      {"python t.py", "--dataset_cache_dir", "data_cache_dir", node_local},
      {"python t.py", "--preprocessed_path", "prepared", shared},
      {"python t.py", "--cache_d", "cache_dir", mixed},
      {"llamafactory-cli train", "--cache_dir", "cache_dir", mixed},
      {"python t.py", "--output_dir", "output", never},
      {"hf download x", "--cache-dir", "hub-client.cache_dir", read_mostly},
  };
  for (const Row& row : rows) {
    CAPTURE(row.line, row.flag);
    const Argv argv = words(row.line);
    const Walk found = walk(argv, "/w");
    const auto rule = rule_for_flag(found.programs.at(0), framework_of(found.programs.at(0), argv), row.flag, {});
    REQUIRE(rule);
    CHECK(rule->id == row.id);
    CHECK(rule->cache_class == row.cache_class);
  }
  CHECK_FALSE(rule_for_flag(walk(words("python t.py"), "/w").programs.at(0), nullptr, "--cache", {}));
}

TEST_CASE("each variable stands in the table once, with its source") {
  std::set<std::string> names;
  for (const CacheRule& rule : variable_rules()) {
    CAPTURE(rule.name);
    CHECK(names.insert(rule.name).second);
    CHECK_FALSE(rule.reason.empty());
  }
  for (const std::string kind : {"program", "flag", "variable", "launcher"})
    for (const Row& row : rows_of(kind)) {
      CAPTURE(kind, row.name);
      CHECK_FALSE(row.get("source").empty());
      for (const auto& [key, value] : row.fields())
        CHECK(is_listed(key, k_keys));
      CHECK((kind == "launcher" || kind == "program" ||
             is_listed(row.get("class"), "node-local mixed read-mostly shared never")));
    }
}

TEST_CASE("programs of Python that read its caches") {
  for (const std::string name : {"lm_eval", "axolotl", "swift", "vllm", "fairseq-train", "trl", "tune", "litgpt"}) {
    CAPTURE(name);
    CHECK(is_listed(name, words_of("python")));
    CHECK(walk({"/opt/env/bin/" + name, "run"}, "/w").programs.at(0).python);
  }
  for (const std::string name : {"true", "bash", "ssh", "hf", "nvidia-smi", "mytool"}) {
    CAPTURE(name);
    CHECK_FALSE(is_listed(name, words_of("python")));
  }
  CHECK_FALSE(walk(words("mytool --x"), "/w").programs.at(0).python);
}

TEST_CASE("variables that the guard leaves where they are") {
  const std::vector<UserRule> rules{
      {"", "TRITON_CACHE_DIR", false, "--keep"},     {"", "--cache_dir", false, "--keep"},
      {"", "VLLM_CACHE_ROOT", true, "--local"},      {"", "VLLM_CACHE_ROOT", false, "yaml:4"},
      {"x*.py", "NUMBA_CACHE_DIR", false, "yaml:5"}, {"", "MYCACHE", false, "yaml:6"}};
  CHECK(kept_variables(rules) == "TRITON_CACHE_DIR:MYCACHE");
  CHECK(kept_variables({}).empty());
  CHECK(guard_variables({.directory = "/g"}, "/x:/g") == Variables{{"PYTHONPATH", "/g:/x"}});
  CHECK(guard_variables({.directory = "/g"}, "") == Variables{{"PYTHONPATH", "/g/"}});
  CHECK(guard_variables({.directory = "/g"}, "/g/") == Variables{{"PYTHONPATH", "/g/"}});
  CHECK(guard_variables({.directory = "/g"}, "/g/:/x") == Variables{{"PYTHONPATH", "/g/:/x"}}); // a script added /x
  CHECK(guard_variables({.directory = "/g", .keep = "A:B", .config = "/c.yaml"}, "") ==
        Variables{{"PYTHONPATH", "/g/"}, {"SHAREFS_GUARD_KEEP", "A:B"}, {"SHAREFS_CONFIG", "/c.yaml"}});
}
