// Shell text: order is meaning. What reaches the program is what counts.
#include "given.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::cachefix;
using test::codes;
using test::local_of;
using test::World;

namespace {

/// `{/share/x}` stands for the local directory of a path.
std::string with_locals(std::string text) {
  for (auto at = text.find("{/"); at != std::string::npos; at = text.find("{/")) {
    const auto end = text.find('}', at);
    text.replace(at, end - at + 1, local_of(text.substr(at + 1, end - at - 1)));
  }
  return text;
}

} // namespace

TEST_CASE("an assignment is changed where it stands, or the program gets its own behind it") {
  struct Row {
    std::string before, after;
    std::string codes = {};
  };
  const std::string t = "python t.py\n";
  const std::vector<Row> rows = {
      {"export HF_HOME=/share/h; export HF_DATASETS_CACHE=$HF_HOME/datasets; " + t,
       "export HF_MODULES_CACHE={/share/h/modules}\nexport HF_XET_CACHE={/share/h/xet}\n"
       "export HF_HOME=/share/h; export HF_DATASETS_CACHE={/share/h/datasets}; " +
           t},
      {"export HF_DATASETS_CACHE=/share/a\nexport HF_DATASETS_CACHE=/share/b\n" + t,
       "export HF_DATASETS_CACHE={/share/a}\nexport HF_DATASETS_CACHE={/share/b}\n" + t},
      {"HF_DATASETS_CACHE=/share/a\nexport HF_DATASETS_CACHE\n" + t,
       "HF_DATASETS_CACHE={/share/a}\nexport HF_DATASETS_CACHE\n" + t},
      {"declare -x HF_DATASETS_CACHE=/share/a\n" + t, "declare -x HF_DATASETS_CACHE={/share/a}\n" + t},
      {"set -a\nHF_DATASETS_CACHE=/share/a\n" + t, "set -a\nHF_DATASETS_CACHE={/share/a}\n" + t},
      {": ${HF_DATASETS_CACHE:=/share/a}\nexport HF_DATASETS_CACHE\n" + t,
       ": ${HF_DATASETS_CACHE:=/share/a}\nexport HF_DATASETS_CACHE\nHF_DATASETS_CACHE={/share/a} " + t},
      {"export HF_DATASETS_CACHE=/share/a\nmkdir -p $HF_DATASETS_CACHE\n" + t,
       "export HF_DATASETS_CACHE=/share/a\nmkdir -p $HF_DATASETS_CACHE\nHF_DATASETS_CACHE={/share/a} " + t},
      {"if x; then export HF_DATASETS_CACHE=/share/a; fi\n" + t,
       "if x; then export HF_DATASETS_CACHE={/share/a}; fi\n" + t},
      {"export HF_DATASETS_CACHE=/share/a\nunset HF_DATASETS_CACHE\n" + t,
       "export HF_DATASETS_CACHE={/share/a}\nunset HF_DATASETS_CACHE\n" + t},
      {"export HF_HUB_CACHE=/share/hub\npython run_clm.py --cache_dir /share/c\n",
       "export HF_DATASETS_CACHE={/share/c}\nexport HUGGINGFACE_HUB_CACHE=/share/c\n"
       "export HF_HUB_CACHE=/share/hub\nHF_HUB_CACHE=/share/c python run_clm.py\n"},
      {"export TRANSFORMERS_CACHE=/share/tc\npython run_clm.py --cache_dir /share/c\n",
       "export HF_DATASETS_CACHE={/share/c}\nexport HF_HUB_CACHE=/share/c\nexport HUGGINGFACE_HUB_CACHE=/share/c\n"
       "export TRANSFORMERS_CACHE=/share/tc\nTRANSFORMERS_CACHE=/share/c python run_clm.py\n"},
      {"export HF_DATASETS_CACHE=$SLURM_TMPDIR/hf\n" + t, "export HF_DATASETS_CACHE=$SLURM_TMPDIR/hf\n" + t},
      {"export HF_DATASETS_CACHE=$SCRATCH/hf\n" + t, "export HF_DATASETS_CACHE=$SCRATCH/hf\n" + t, "SF403"},
      {"export HF_DATASETS_CACHE=${X:-/scratch/hf}\n" + t, "export HF_DATASETS_CACHE=${X:-/scratch/hf}\n" + t, "SF403"},
      {"eval \"$CMD\"\n", "eval \"$CMD\"\n", "SF403"},
      {"eval \"python t.py --cache_dir /share/c\"\n", "eval \"python t.py --cache_dir /share/c\"\n", "SF415"},
      {"eval \"$(conda shell.bash hook)\"\n" + t, "eval \"$(conda shell.bash hook)\"\n" + t},
      {"A=(--x --cache_dir /share/c)\npython t.py \"${A[@]}\"\n",
       "A=(--x --cache_dir /share/c)\npython t.py \"${A[@]}\"\n", "SF403"},
      {"$CMD --cache_dir /share/c\n", "$CMD --cache_dir /share/c\n", "SF403"},
      {"source ./env.sh\n" + t, "source ./env.sh\nHF_DATASETS_CACHE={/share/e} " + t},
      // The switch comes later, and holds for the program all the same.
      {"export HF_DATASETS_CACHE=/share/full\nexport HF_DATASETS_OFFLINE=1\n" + t,
       "export HF_DATASETS_CACHE=/share/full\nexport HF_DATASETS_OFFLINE=1\n" + t, "SF419"},
      {"python t.py --cache_dir $1\n", "python t.py --cache_dir $1\n", "SF403"},
      {"set -o allexport\nHF_DATASETS_CACHE=/share/a\nset +o allexport\n" + t,
       "set -o allexport\nHF_DATASETS_CACHE={/share/a}\nset +o allexport\n" + t},
      {"set -euao pipefail\nHF_DATASETS_CACHE=/share/a\n" + t,
       "set -euao pipefail\nHF_DATASETS_CACHE={/share/a}\n" + t},
      {". ./plain.sh\nexport HF_DATASETS_CACHE\n" + t,
       ". ./plain.sh\nexport HF_DATASETS_CACHE\nHF_DATASETS_CACHE={/share/p} " + t},
      {"eval 'export HF_DATASETS_CACHE=/share/a'\n" + t,
       "eval 'export HF_DATASETS_CACHE=/share/a'\nHF_DATASETS_CACHE={/share/a} " + t},
      // A function sees what is set where it is called.
      {"run() { " + t + "}\nexport HF_HOME=/share/h\nrun\n",
       "export HF_DATASETS_CACHE={/share/h/datasets}\nexport HF_MODULES_CACHE={/share/h/modules}\n"
       "export HF_XET_CACHE={/share/h/xet}\nrun() { " +
           t + "}\nexport HF_HOME=/share/h\nrun\n"},
      {"export HF_DATASETS_CACHE=/share/full\nrun() { HF_DATASETS_OFFLINE=1 " + t + "}\nrun\n",
       "export HF_DATASETS_CACHE=/share/full\nrun() { HF_DATASETS_OFFLINE=1 " + t + "}\nrun\n", "SF419"},
      {"export HF_DATASETS_CACHE=/share/full\nrun() { " + t + "}\nHF_DATASETS_OFFLINE=1 run\n",
       "export HF_DATASETS_CACHE=/share/full\nrun() { " + t + "}\nHF_DATASETS_OFFLINE=1 run\n", "SF419"},
      {"export HF_DATASETS_CACHE=/share/full\nexport HF_DATASETS_OFFLINE=$X\n" + t,
       "export HF_DATASETS_CACHE=/share/full\nexport HF_DATASETS_OFFLINE=$X\n" + t, "SF419"},
      {"while read -r l; do export \"$l\"; done < f\n" + t, "while read -r l; do export \"$l\"; done < f\n" + t,
       "SF403"},
      {"export $(cat .env | xargs)\n" + t, "export $(cat .env | xargs)\n" + t, "SF403"},
      {"cat > job.env <<E\nE\n. ./job.env\n" + t, "cat > job.env <<E\nE\n. ./job.env\n" + t, "SF403"},
      {"mapfile -t A < args\npython t.py \"${A[@]}\"\n", "mapfile -t A < args\npython t.py \"${A[@]}\"\n", "SF403"},
      {"mapfile -t A < args\npython t.py \"${B[@]}\"\n", "mapfile -t A < args\npython t.py \"${B[@]}\"\n"},
      {"python t.py $(cat args)\n", "python t.py $(cat args)\n", "SF403"},
      {"torchrun t.py \"$(< /job/args)\" `cat none`\n", "torchrun t.py \"$(< /job/args)\" `cat none`\n", "SF403"},
      {". ./other.env\n" + t, ". ./other.env\n" + t},
      {"python - <<'E'\n#facts caches=cache_dir=/share/d\nload(cache_dir='/share/d')\nE\n",
       "python - <<'E'\n#facts caches=cache_dir=/share/d\nload(cache_dir='/share/d')\nE\n", "SF412"},
      {"llamafactory-cli train made.yaml\n", "llamafactory-cli train made.yaml\n", "SF412"},
      {"trl sft --config made.yaml\n", "trl sft --config made.yaml\n", "SF412"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.before);
    World world;
    world.files["/job/env.sh"] = "export HF_DATASETS_CACHE=/share/e\n";
    world.files["/job/args"] = "--x 1\n--cache_dir\n/share/c\n";
    world.files["/job/plain.sh"] = "HF_DATASETS_CACHE=/share/p\n";
    const ScriptResult result = world.script("job.sh", row.before);
    CHECK(result.text == with_locals(row.after));
    CHECK(codes(result.sanitized) == row.codes);
  }
}

TEST_CASE("what is said of a script that is started is what is true of it") {
  World world;
  world.files["/job/job.sh"] = "export HF_HOME=/share/h\nexport HF_DATASETS_CACHE=$HF_HOME/datasets\npython t.py\n";
  world.files["/job/args.sh"] = "python t.py --cache_dir $1 --out $2\n";
  world.files["/job/unclear.sh"] = "python t.py --cache_dir $(pick)\n";
  const Sanitized overridden = world.run({"bash", "job.sh"});
  CHECK_FALSE(overridden.set.contains("HF_DATASETS_CACHE")); // the script's own line comes later
  CHECK(overridden.set.contains("HF_MODULES_CACHE"));
  REQUIRE(codes(overridden) == "SF415");
  CHECK(overridden.diagnoses[0].subject.find("job.sh:2:8") != std::string::npos);
  CHECK(codes(world.run({"bash", "args.sh", "/share/c", "x"})) == "SF415");
  CHECK(codes(world.run({"bash", "args.sh", "/tmp/c", "x"})).empty());
  CHECK(codes(world.run({"sbatch", "unclear.sh"})) == "SF403");
  // Its own words: what the script does with them is not known.
  world.files["/job/words.sh"] = "exec ./tool \"$@\"\n";
  for (const Argv& argv : {Argv{"sbatch", "words.sh", "--cache_dir", "/share/c"},
                           Argv{"sbatch", "missing.sh", "--cache_dir", "/share/c"}}) {
    const Sanitized left = world.run(argv);
    CHECK(left.argv == argv);
    CHECK(codes(left) == "SF415");
  }
}

TEST_CASE("the arguments of bash -c, and what the environment knows, are values") {
  World world;
  world.environment.emplace_back("SCRATCH=/share/s");
  CHECK(world.run({"bash", "-c", "python t.py --cache_dir $SCRATCH/c"}).argv[2] ==
        "python t.py --cache_dir " + local_of("/share/s/c"));
  CHECK(world.run({"bash", "-c", "python t.py --cache_dir $1", "x", "/share/c"}).argv[2] ==
        "python t.py --cache_dir " + local_of("/share/c"));
  const Sanitized in_front = world.run({"env", "HF_DATASETS_CACHE=/share/d", "bash", "-c", "python t.py"});
  CHECK(in_front.argv[1] == "HF_DATASETS_CACHE=" + local_of("/share/d"));
  CHECK(in_front.argv.back() == "python t.py");
}
