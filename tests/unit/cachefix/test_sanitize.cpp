#include "cachefix/sanitize.hpp"
#include "given.hpp"
#include "support/catch.hpp"

#include <algorithm>

using namespace sharefs;
using namespace sharefs::cachefix;
using test::local_of;
using test::words;
using test::World;

namespace {

const std::string k_cache = "/share/out_cache";

std::string join_words(const Argv& argv) {
  std::string out;
  for (const std::string& word : argv)
    out += (out.empty() ? "" : " ") + word;
  return out;
}

const Decision* change_of(const Sanitized& result, const std::string& flag) {
  for (const Decision& change : result.decisions)
    if (change.is_change() && change.flag == flag)
      return &change;
  return nullptr;
}

} // namespace

TEST_CASE("requirement 1: with nothing to change argv is byte-identical") {
  World world;
  const Argv argv = {"python", "t.py", "", "a\nb", "--", "*", "\xff\xfe", "--cache_dir", "/share/x", "--output_dir"};
  const Sanitized result = world.run(argv);
  CHECK(result.argv == argv);
  CHECK(result.changes().empty());
  CHECK(result.set.empty());
  CHECK(result.directories.empty());
}

TEST_CASE("requirement 4: all six spellings, unique prefixes and repeats of the script's flag, nothing else") {
  World world;
  const std::string l = local_of(k_cache);
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"--cache_dir /share/out_cache", "--cache_dir " + l},
      {"--cache_dir=/share/out_cache", "--cache_dir=" + l},
      {"--cache-dir /share/out_cache", "--cache-dir " + l},
      {"--cache-dir=/share/out_cache", "--cache-dir=" + l},
      {"--cache_d /share/out_cache", "--cache_d " + l},
      {"--cache-di=/share/out_cache", "--cache-di=" + l},
      {"--cache_dir /tmp/a --cache_dir /share/out_cache", "--cache_dir /tmp/a --cache_dir " + l},
      {"--cache_dir /share/out_cache --cache_dir /tmp/a", "--cache_dir " + l + " --cache_dir /tmp/a"},
      {"--cache_dir= --output_dir /share/out", "--cache_dir= --output_dir /share/out"},
      {"--cache_dir", "--cache_dir"},
      {"--cache_dir --x /share/y", "--cache_dir --x /share/y"},
      {"--cache_dir s3://bucket/x", "--cache_dir s3://bucket/x"},
      {"--my_cache_dir /share/x --cache_dirs /share/x --cache_latents_dir /share/x",
       "--my_cache_dir /share/x --cache_dirs /share/x --cache_latents_dir /share/x"},
      {"-- --cache_dir /share/out_cache", "-- --cache_dir /share/out_cache"},
  };
  for (const auto& [given, expected] : rows) {
    CAPTURE(given);
    const Sanitized result = world.run(words("torchrun --log_dir /share/logs t.py " + given));
    CHECK(join_words(result.argv) == "torchrun --log_dir /share/logs t.py " + expected);
  }
}

TEST_CASE("an unknown script's flag is rewritten in place; its models stay found") {
  World world;
  world.directories[k_cache] = {"models--org--m", "json", "datasets--x"};
  const Sanitized result = world.run(words("python t.py --cache_dir /share/out_cache --output_dir /share/out"));
  REQUIRE(result.changes().size() == 1);
  CHECK(result.changes()[0].action == Action::rewrite);
  CHECK(result.changes()[0].index == 3U);
  CHECK(result.changes()[0].cache_class == CacheClass::mixed);
  CHECK(result.links == std::vector<ModelLink>{{local_of(k_cache) + "/models--org--m", k_cache + "/models--org--m"}});
  REQUIRE(result.scripts.size() == 1);
  CHECK(result.scripts[0].framework.empty());
}

TEST_CASE("requirement 6: a known framework loses the flag and finds datasets and models by the environment") {
  World world;
  world.environment.push_back("TRANSFORMERS_CACHE=/old");
  const Sanitized result = world.run(words("python examples/run_clm.py --cache_dir /share/out_cache --do_train"));
  CHECK(join_words(result.argv) == "python examples/run_clm.py --do_train");
  CHECK(result.set.at("HF_DATASETS_CACHE") == local_of(k_cache));
  CHECK(result.set.at("HF_HUB_CACHE") == k_cache);
  CHECK(result.set.at("TRANSFORMERS_CACHE") == k_cache); // older releases read it first
  REQUIRE(change_of(result, "--cache_dir") != nullptr);
  CHECK(change_of(result, "--cache_dir")->action == Action::drop);
}

TEST_CASE("requirement 5: the deny list and read-mostly frameworks are never touched") {
  World world;
  for (const std::string line :
       {"torchrun fastchat/train/train_mem.py --cache_dir /share/m --output_dir /share/o",
        "python -m levanter.main.train_lm --data.cache_dir /share/c",
        "python pretrain_gpt.py --data-cache-path /share/c",
        "python t.py --output_dir /share/o --save /share/s --load /share/l --resume_from_checkpoint /share/r "
        "--logging_dir /share/g --dataset_dir /share/d --tokenized_path /share/t --packing_cache /share/p"}) {
    CAPTURE(line);
    const Sanitized result = world.run(words(line));
    CHECK(result.argv == words(line));
    CHECK(result.changes().empty());
    CHECK_FALSE(result.kept().empty());
  }
}

TEST_CASE("requirement 7: HF_HOME and XDG_CACHE_HOME are never set or moved") {
  World world;
  world.mounts.emplace_back("/home", "nfs");
  world.environment = {"HOME=/home/alice", "HF_HOME=/share/hf", "XDG_CACHE_HOME=/home/alice/.cache"};
  const Sanitized result = world.run(words("python run_clm.py --cache_dir /share/out_cache"));
  CHECK_FALSE(result.set.contains("HF_HOME"));
  CHECK_FALSE(result.set.contains("XDG_CACHE_HOME"));
  CHECK_FALSE(result.set.contains("HOME"));
  CHECK(result.set.at("HF_MODULES_CACHE") == local_of("/share/hf/modules"));
  CHECK(result.set.at("TRITON_CACHE_DIR") == local_of("/home/alice/.triton/cache"));
  CHECK(result.set.at("HF_HUB_CACHE") == k_cache); // not local: models are shared
}

TEST_CASE("requirement 8: what is shared is told by the mount table, through links, for paths that do not exist") {
  World world;
  world.mounts = {{"/", "ext4"},    {"/share", "nfs4"},      {"/share/local", "xfs"}, {"/auto", "autofs"},
                  {"/l", "lustre"}, {"/fuse", "fuse.sshfs"}, {"/scratch", "ext4"}};
  world.links = {{"/data", "/share/d"}, {"/share/out", "/scratch/o"}, {"/home/alice/c", "../../share/c"}};
  const std::vector<std::pair<std::string, bool>> rows = {
      {"/share/a", true},
      {"/data/not/yet", true},
      {"/share/out/x", false},
      {"/share/local/x", false},
      {"/auto/x", true},
      {"/l/x", true},
      {"/fuse/x", true},
      {"/scratch/x", false},
      {"/scratch/../share/x", true},
      {"~/c/x", true},
      {"~/d", false},
      {"/share2/x", false},
      {"/data/../x", true},
      {"../share/x", true},
      {"x", false},
      {"/share/out/../y", false},
  };
  for (const auto& [path, shared] : rows) {
    CAPTURE(path);
    const Sanitized result = world.run({"python", "t.py", "--cache_dir", path});
    CHECK(result.changes().empty() == !shared);
  }
}

TEST_CASE("requirement 11: the local path is short, stable, and of plain characters") {
  const std::string key = cache_key("/share/a b/\xC3\xA4");
  CHECK(key.size() == 12);
  CHECK(std::all_of(key.begin(), key.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }));
  CHECK(cache_key("/share//x/") == cache_key("/share/x"));
  CHECK(cache_key("/share/x") != cache_key("/share/y"));
  CHECK(cache_key("/share/x") == "2594c5a21f28"); // the same in every version and on every node
}

TEST_CASE("requirement 15: switched off, and applying twice equals applying once") {
  World world;
  world.mounts.emplace_back("/home", "nfs");
  const std::string line =
      "env HF_DATASETS_CACHE=/share/e torchrun t.py --cache_dir /share/out_cache --cache-dir=/share/b";
  const Sanitized once = world.run(words(line));
  CHECK_FALSE(once.changes().empty());
  World again = world;
  for (const auto& [name, value] : once.set)
    again.environment.push_back(name + "=" + value);
  const Sanitized twice = again.run(once.argv);
  CHECK(twice.argv == once.argv);
  CHECK(twice.changes().empty());

  world.environment.emplace_back("SHAREFS_CACHEFIX=0");
  const Sanitized off = world.run(words(line));
  CHECK(off.argv == words(line));
  CHECK(off.set.empty());
}

TEST_CASE("variables: a word that assigns one is rewritten, in lists too; read-mostly ones are kept") {
  World world; // on the only node of a job
  world.environment = test::on_the_only_node();
  const Sanitized result =
      world.run(words("srun --export=ALL,HF_DATASETS_CACHE=/share/a,TRITON_CACHE_DIR=/share/bb,X=1 env "
                      "HF_HUB_CACHE=/share/h python t.py"));
  CHECK(result.argv[1] == "--export=ALL,HF_DATASETS_CACHE=" + local_of("/share/a") +
                              ",TRITON_CACHE_DIR=" + local_of("/share/bb") + ",X=1");
  CHECK(result.argv[3] == "HF_HUB_CACHE=/share/h");
  CHECK(result.set.empty());
  REQUIRE(result.kept().size() == 1);
  CHECK(result.kept()[0].cache_class == CacheClass::read_mostly);
}

TEST_CASE("rules of the user go first") {
  World world;
  Rules rules;
  rules.user = {{"", "--cache_dir", false, "--keep"}, {"t*.py", "--scratch", true, "sharefs.yaml:3:1"}};
  const Sanitized result = world.run(words("python t.py --cache_dir /share/x --scratch /share/s"), rules);
  CHECK(join_words(result.argv) == "python t.py --cache_dir /share/x --scratch " + local_of("/share/s"));
}

TEST_CASE("the script's own source decides, for known names too") {
  struct Row {
    std::string facts, argv; ///< argv: `L` for the local directory; "same"
    std::string code;
  };
  const std::vector<Row> rows = {
      {"optional datasets=1 models=2", "python run_sft.py", "SF422"},
      {"required datasets=1 models=2", "python run_sft.py --cache_dir L", "SF422"},   // dropped, it exits with 2
      {"optional datasets=2/1 models=1", "python run_sft.py --cache_dir L", "SF422"}, // one default stays
      {"optional datasets=1 models=2/1", "python run_sft.py --cache_dir L", "SF422"}, // two hubs
      {"optional datasets=1 models=1 escapes", "python run_sft.py --cache_dir L", "SF422"},
      {"optional datasets=1", "python run_sft.py --cache_dir L", "SF422"},
      {"optional models=1", "same", ""}, // FastChat's way
      {"optional datasets=1 models=1 other=os.walk", "same", "SF420"},
      {"optional datasets=1 models=1 outputs=torch.save", "same", "SF420"},
      {"", "python run_sft.py --cache_dir L", "SF422"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.facts);
    World world;
    world.files["/job/run_sft.py"] = "#facts " + row.facts;
    world.directories["/share/x"] = {"json"};
    const std::string line = "python run_sft.py --cache_dir /share/x";
    const Sanitized result = world.run(words(line));
    std::string expected = row.argv == "same" ? line : row.argv;
    if (const auto at = expected.find(" L"); at != std::string::npos)
      expected.replace(at + 1, 1, local_of("/share/x"));
    CHECK(join_words(result.argv) == expected);
    CHECK((result.diagnoses.empty() ? "" : result.diagnoses[0].code) == row.code);
    CHECK(result.set.contains("HF_HUB_CACHE") == (expected == "python run_sft.py"));
  }
}

TEST_CASE("requirement 14: left-over *.incomplete directories are reported and nothing is done to them") {
  World world;
  world.directories["/share/x/json/default-1/0.0.0/abc.incomplete"] = {};
  const Sanitized result = world.run(words("python t.py --cache_dir /share/x"));
  REQUIRE(result.diagnoses.size() == 1);
  CHECK(result.diagnoses[0].code == "SF410");
  CHECK(result.diagnoses[0].severity == Severity::info);
}

TEST_CASE("requirement 9: without a usable local directory the command is not started") {
  World world;
  world.local = {"", "/var/cache cannot be written", ""};
  const Sanitized result = world.run(words("python t.py --cache_dir /share/x"));
  REQUIRE(result.diagnoses.size() == 1);
  CHECK(result.diagnoses[0].severity == Severity::error);
  CHECK(result.argv == words("python t.py --cache_dir /share/x"));
}

TEST_CASE("a flag that may be short for --cache_dir is left with a warning") {
  World world;
  const Sanitized result = world.run(words("python t.py --cache /share/x"));
  CHECK(result.changes().empty());
  REQUIRE(result.diagnoses.size() == 1);
  CHECK(result.diagnoses[0].code == "SF406");
}

TEST_CASE("a launcher that is named by a URL is no launcher, and no crash") {
  World world;
  const std::string line = "http://h/mpirun -np 2 python run_clm.py --cache_dir /share/x";
  CHECK(world.run(words(line)).argv.front() == "http://h/mpirun");
}

TEST_CASE("caches that the source names itself are moved where a variable reaches them, else said") {
  struct Row {
    std::string facts, source, line, variable, path, codes;
  };
  const std::vector<Row> rows = {
      {"HF_HOME=/share/h", "os.environ['HF_HOME']", "python t.py", "HF_DATASETS_CACHE", "/share/h/datasets", ""},
      {"TRITON_CACHE_DIR:=/share/t", "os.environ.setdefault('TRITON_CACHE_DIR')", "python t.py", "TRITON_CACHE_DIR",
       "/share/t", ""},
      {"HF_DATASETS_CACHE=/share/d", "os.environ['HF_DATASETS_CACHE']", "torchrun t.py", "", "", "SF412"},
      {"HF_DATASETS_CACHE=/tmp/d", "os.environ['HF_DATASETS_CACHE']", "torchrun t.py", "", "", ""},
      {"cache_dir=/share/d", "cache_dir='/share/d'", "python t.py", "", "", "SF412"},
      {"cache_dir=./d", "cache_dir='./d'", "env -C /share python /job/t.py", "", "", "SF412"},
      {"--cache_dir=/share/d datasets=1", "cache_dir', default='/share/d'", "python t.py", "", "", "SF412"},
      {"--cache_dir=/share/d datasets=1", "cache_dir', default='/share/d'", "python t.py --cache_dir /tmp/d", "", "",
       ""},
      {"--cache_dir=/share/d models=1", "cache_dir', default='/share/d'", "python t.py", "", "", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.facts, row.line);
    World world;
    world.files["/job/t.py"] = "#facts optional caches=" + row.facts + "\n" + row.source + "\n";
    const Sanitized result = world.run(words(row.line));
    CHECK(result.argv == words(row.line));
    CHECK(test::codes(result) == row.codes);
    CHECK(result.set.empty() == row.variable.empty());
    if (!row.variable.empty())
      CHECK(result.set.at(row.variable) == local_of(row.path));
  }
  World branch; // the source sets it somewhere, perhaps in a branch: what is set around it may hold all the same
  branch.environment.emplace_back("HF_HOME=/share/h");
  branch.files["/job/t.py"] = "#facts caches=HF_HOME=/scratch/h\nos.environ['HF_HOME']\n";
  CHECK(branch.run(words("python t.py")).set.at("HF_DATASETS_CACHE") == local_of("/share/h/datasets"));
  const Sanitized text = World().run({"python", "-c", "#facts caches=cache_dir=/share/d\nf(cache_dir='/share/d')"});
  CHECK(test::codes(text) == "SF412");
}

TEST_CASE("models in a layout of their own are no cache that links bring along") {
  World world;
  world.files["/job/t.py"] = "#facts required datasets=1 models=1 own_layout";
  const Argv argv = words("python t.py --cache_dir /share/x");
  world.directories["/share/x"] = {"models--a--b"};
  CHECK(world.run(argv).argv.back() == local_of("/share/x"));
  world.directories["/share/x"] = {"models--a--b", "ViT-B-32.pt"};
  CHECK(world.run(argv).argv == argv);
  CHECK(test::codes(world.run(argv)) == "SF420");
}

TEST_CASE("an override's value is a path, in quotes or not, or it is left") {
  World world;
  world.files["/job/tool"] = "\x7f"
                             "ELF";
  const auto after = [&](const std::string& word) { return world.run({"python", "t.py", word}).argv.back(); };
  CHECK(after("a.cache_dir=/share/x") == "a.cache_dir=" + local_of("/share/x"));
  world.directory = "/share/job";
  CHECK(after("a.cache_dir=null") == "a.cache_dir=null");
  world.directory = "/job";
  CHECK(after("a.cache_dir='/share/x'") == "a.cache_dir='" + local_of("/share/x") + "'");
  for (const std::string word : {"cache_dir=/share/x,/share/y", "cache_dir=${oc.env:HOME}/x", "cache_dir=[/share/x]"}) {
    CHECK(after(word) == word);
    CHECK(test::codes(world.run({"python", "t.py", word})) == "SF412");
  }
  CHECK(world.run(words("./tool cache_dir=/share/x")).argv.back() == "cache_dir=/share/x"); // compiled
}

TEST_CASE("flags whose names say that datasets may be cached there are said") {
  World world;
  for (const std::string flag : {"--data_cache", "--dataset-cache", "--hf_home", "--cache.dir", "--hf-cache"})
    CHECK(test::codes(world.run({"python", "t.py", flag, "/share/x"})) == "SF406");
  for (const std::string flag : {"--model_cache_dir", "--hub_cache", "--use_cache", "--cache_latents"})
    CHECK(test::codes(world.run({"python", "t.py", flag, "/share/x"})).empty());
}
