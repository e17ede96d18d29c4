#include "given.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::cachefix;
using test::World;

namespace {

using Names = std::map<std::string, std::vector<std::string>>;

/// Directories on the share have the names that are given; files have the texts.
ScriptResult script(const std::string& text, const std::map<std::string, std::string>& files = {},
                    const Names& directories = {}) {
  World world;
  world.local = {"/L", "", ""};
  world.environment = test::on_the_only_node(); // where srun starts processes here
  world.files = files;
  world.directories = directories;
  return world.script("job.sh", text);
}

} // namespace

TEST_CASE("a script's copy: the flag is changed, everything else stays byte for byte") {
  const std::string before = "#!/bin/bash\n#SBATCH -N 2\n\n# --cache_dir /share/c\noutput_dir=/share/o   # keep\n";
  const std::string command = "srun   python train.py \\\n    --output_dir ${output_dir} \\\n    --cache_dir ";
  const ScriptResult result = script(before + command + "${output_dir}_cache \\\n    --x 'a  b'   > log 2>&1\n");
  CHECK(result.text == before + command + "/L/" + cache_key("/share/o_cache") + " \\\n    --x 'a  b'   > log 2>&1\n");
  REQUIRE(result.sanitized.changes().size() == 1);
  CHECK(result.sanitized.changes()[0].reason.find("job.sh:8:17") != std::string::npos);
}

TEST_CASE("a script's copy exports what its commands need, behind the header") {
  const ScriptResult result = script("#!/bin/bash\n#SBATCH -N 2\npython run_clm.py --cache_dir /share/c --lr 1\n");
  CHECK(result.text == "#!/bin/bash\n#SBATCH -N 2\nexport HF_DATASETS_CACHE=/L/" + cache_key("/share/c") +
                           "\nexport HF_HUB_CACHE=/share/c\nexport HUGGINGFACE_HUB_CACHE=/share/c\n"
                           "python run_clm.py --lr 1\n");
}

TEST_CASE("variables that one program needs are not given to others in the text") {
  const std::string own =
      "HF_DATASETS_CACHE=/L/" + cache_key("/share/c") + " HF_HUB_CACHE=/share/c HUGGINGFACE_HUB_CACHE=/share/c ";
  const std::string two = "python run_clm.py --cache_dir /share/c\npython infer.py --model gpt2\n";
  const std::string after = own + "python run_clm.py\npython infer.py --model gpt2\n";
  CHECK(script(two).text == after);
  CHECK(script(two, {}, {{"/share/c", {"models--gpt2"}}}).text == after);
  const std::string runs =
      "conda activate e\nconda run -n e python a.py\nexec python run_clm.py --cache_dir /share/c\n";
  CHECK(script(runs).text == "conda activate e\nconda run -n e python a.py\n" + own + "exec python run_clm.py\n");
  const std::string one = "mkdir -p /share/o\nexport A=1\npython run_clm.py --cache_dir /share/c\n";
  CHECK(script(one, {}, {{"/share/c", {"models--gpt2"}}}).text.find("export HF_HUB_CACHE=/share/c\n") !=
        std::string::npos);
}

TEST_CASE("requirement 10: a script's copy rests on no file that is not there when it runs") {
  const ScriptResult hosts =
      script("deepspeed --hostfile h run_clm.py --cache_dir /share/c\n", {{"/job/h", "n1\nn2\n"}});
  CHECK(hosts.text == "deepspeed --hostfile h run_clm.py --cache_dir /L/" + cache_key("/share/c") + "\n");
  CHECK(hosts.sanitized.copies.empty());
  CHECK_FALSE(hosts.sanitized.set.contains("DS_ENV_FILE"));

  const std::string document = "python run_clm.py a.json\n";
  const ScriptResult left = script(document, {{"/job/a.json", R"({"cache_dir": "/share/c"})"}});
  CHECK(left.text == document);
  CHECK(left.sanitized.copies.empty());
  REQUIRE(left.sanitized.diagnoses.size() == 1);
  CHECK(left.sanitized.diagnoses[0].code == "SF412");
}

TEST_CASE("a variable with options, and a directory that is not known, are no matter where nothing shared is named") {
  for (const std::string text :
       {"OPTS='--lr 1 --cache_dir /tmp/c'\npython train.py $OPTS\n", "OPTS='--cache_dir /share/c'\necho $OPTS\n",
        "cd $X\npython train.py --cache_dir /tmp/c --output_dir o\n", "OPTS='--lr 1'\npython train.py $OPTS $MORE\n"}) {
    CAPTURE(text);
    const ScriptResult result = script(text);
    CHECK(result.text == text);
    CHECK(result.sanitized.diagnoses.empty());
  }
}

TEST_CASE("a directory that the text changes into for certain counts") {
  for (const std::string before : {"cd /share/x && ", "cd /share; cd x; ", "{ cd /share/x; }; ", "pushd /share/x; "}) {
    CAPTURE(before);
    CHECK(script(before + "python train.py --cache_dir cache\n").text ==
          before + "python train.py --cache_dir /L/" + cache_key("/share/x/cache") + "\n");
  }
}

TEST_CASE("what cannot be seen through stays and is named with line and column") {
  for (const std::string text :
       {"python train.py --cache_dir $1\n", "python train.py --cache_dir $(date)\n",
        "if x; then c=/share/c; fi\npython train.py --cache_dir $c\n",
        "f() { c=/share/c; }\npython train.py --cache_dir $c\n", "c=/share/c; read c; python train.py --cache_dir $c\n",
        "python train.py --cache_dir ${c:-/share/c}\n", "(c=/share/c); python train.py --cache_dir $c\n",
        "true || c=/share/c; python train.py --cache_dir $c\n", "python train.py --cache_dir /share/{a,b}\n",
        "(cd /share/x; python train.py --cache_dir cache)\n", "cd $X\npython train.py --cache_dir cache\n",
        "f() { cd /share; }; f; python train.py --cache_dir ./cache\n", "popd; python train.py --cache_dir cache\n",
        "OPTS='--lr 1 --cache_dir /share/c'\npython train.py $OPTS\n",
        "OPTS=(--x 1 --cache-dir=/share/c)\ntorchrun train.py \"${OPTS[@]}\"\n",
        "OPTS=\"--cache_dir $C\"; OPTS+=' --y'; python train.py ${OPTS} --z\n"}) {
    CAPTURE(text);
    const ScriptResult result = script(text);
    CHECK(result.text == text);
    REQUIRE_FALSE(result.sanitized.diagnoses.empty());
    CHECK(result.sanitized.diagnoses[0].code == "SF403");
    CHECK(result.sanitized.diagnoses[0].subject.starts_with("job.sh:"));
  }
}
