#include "cachefix/run_plan.hpp"
#include "given.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::cachefix;
using test::installed;
using test::local_of;
using test::words;
using test::World;

namespace {

Rules building(const std::string& build) {
  Rules rules = installed();
  rules.guard->build = build;
  return rules;
}

Rules of_user(const std::string& flag, bool local) {
  Rules rules = installed();
  rules.user = {{"", flag, local, local ? "--local" : "--keep"}};
  return rules;
}

const std::string& guard_of(const RunPlan& result, const std::string& variable) {
  static const std::string k_none;
  const auto found = result.set.find(variable);
  return found == result.set.end() ? k_none : found->second;
}

} // namespace

TEST_CASE("the guard comes in front of PYTHONPATH, once, and no word changes") {
  World world;
  const Argv argv = words("torchrun --nproc_per_node=8 train.py --cache_dir /share/c --output_dir /share/out");
  const RunPlan result = world.run(argv, installed());
  CHECK(result.argv == argv);
  CHECK(guard_of(result, "PYTHONPATH") == "/usr/share/sharefs/guard/");
  CHECK(result.set.size() == 1);
  REQUIRE(result.guarded.size() == 1);
  CHECK(result.guarded[0].flag == "--cache_dir");
  CHECK(result.guarded[0].from == "/share/c");
  CHECK(result.guarded[0].to == local_of("/share/c"));
  CHECK(summary(result) == "datasets of --cache_dir /share/c are built on this node (" + local_of("/share/c") + ")");
  const auto json = document(argv, result);
  CHECK(json["guarded"][0]["flag"] == "--cache_dir");
  CHECK(json["guarded"][0]["value"] == "/share/c");
  CHECK(json["guarded"][0]["directory"] == local_of("/share/c"));
  CHECK(result.directories.empty()); // the guard asks for it when it is needed

  world.environment.emplace_back("PYTHONPATH=/a:/usr/share/sharefs/guard:/b");
  CHECK(guard_of(world.run(argv, installed()), "PYTHONPATH") == "/usr/share/sharefs/guard:/a:/b");
  const RunPlan own = world.run(words("env PYTHONPATH=/x python t.py"), installed());
  CHECK(own.argv == words("env PYTHONPATH=/usr/share/sharefs/guard:/x python t.py"));
}

TEST_CASE("where nothing is at stake nothing changes, and nothing is said") {
  World local;
  local.mounts = {{"/", "ext4"}};
  World off;
  off.environment.emplace_back("SHAREFS_CACHEFIX=0");
  for (const World& world : {local, off}) {
    const Argv argv = words("python t.py --cache_dir /share/c");
    const RunPlan result = world.run(argv, installed());
    CHECK(result.argv == argv);
    CHECK(result.set.empty());
    CHECK(result.diagnoses.empty());
    CHECK(summary(result).empty());
  }
  World world;
  world.environment.emplace_back("TRITON_CACHE_DIR=/share/t");
  for (const std::string line : {"cp train.py /share/c", "echo torchrun t.py", "test -f /share/c/x", "git add train.py",
                                 "sharefs run -- python t.py --cache_dir /share/c", "docker ps"}) {
    CAPTURE(line);
    const RunPlan result = world.run(words(line), installed());
    CHECK(result.argv == words(line));
    CHECK(result.set.empty() == (line != "docker ps"));
    CHECK(result.diagnoses.empty());
  }
}

TEST_CASE("build: local, and --local, rewrite a literal --cache_dir; models are found through links") {
  World world;
  world.directories["/share/c"] = {"models--gpt2", "json"};
  for (const std::string line : {"python t.py --cache_dir /share/c", "python t.py --cache_dir=/share/c --x 1",
                                 "python t.py --cache-dir /share/c", "python t.py --cache_d /share/c"})
    for (const Rules& rules : {building("local"), of_user("--cache_dir", true)}) {
      CAPTURE(line);
      const RunPlan result = world.run(words(line), rules);
      Argv wanted = words(line);
      for (std::string& word : wanted)
        if (const auto at = word.find("/share/c"); at != std::string::npos)
          word.replace(at, 8, local_of("/share/c"));
      CHECK(result.argv == wanted);
      CHECK(result.guarded.empty());
      REQUIRE(result.links.size() == 1);
      CHECK(result.links.at(local_of("/share/c") + "/models--gpt2") == "/share/c/models--gpt2");
      CHECK(result.directories.at(local_of("/share/c")) == "/share/c");
    }
  const Argv remote = words("deepspeed -H hosts t.py --cache_dir /share/c"); // no links there: the guard does it
  CHECK(world.run(remote, building("local")).argv == remote);
  CHECK(world.run(remote, building("local")).guarded.size() == 1);
  CHECK_FALSE(world.run(words("python t.py --cache_dir /share/c"), of_user("--cache_dir", false)).argv.empty());
  CHECK(world.run(words("python t.py --cache_dir /share/c"), of_user("--cache_dir", false)).guarded.empty());
}

TEST_CASE("build: local leaves to the guard what is needed where it lies; --local moves it all the same") {
  World world;
  world.directories["/share/f"] = {"features_train.pt", "json"};
  world.directories["/share/c"] = {"json"};
  for (const std::string line :
       {"python t.py --cache_dir /share/f", "env HF_HUB_OFFLINE=1 python t.py --cache_dir /share/c"}) {
    CAPTURE(line);
    const RunPlan result = world.run(words(line), building("local"));
    CHECK(result.argv == words(line));
    CHECK(result.guarded.size() == 1);
    CHECK(result.diagnoses.empty());
    CHECK(world.run(words(line), of_user("--cache_dir", true)).argv != words(line));
  }
}

TEST_CASE("unique, or no disk for it: nothing stands for the shared path") {
  World world;
  const Argv argv = words("python t.py --cache_dir /share/c");
  CHECK(world.run(argv, building("unique")).guarded.at(0).to == std::nullopt);
  world.local = LocalRoot{"", "all disks are full", "make room"};
  const RunPlan result = world.run(argv, installed());
  CHECK(result.guarded.at(0).to == std::nullopt);
  CHECK(result.diagnoses.empty());
  CHECK(result.argv == argv);
}

TEST_CASE("where the guard does not get hold of the program the words are changed") {
  World world;
  world.files["/job/tool"] = "\x7f"
                             "ELF";
  const Argv compiled = words("./tool --cache_dir /share/c"); // as package managers have it, too
  CHECK(world.run(compiled, installed()).argv == compiled);
  CHECK(world.run(compiled, installed()).diagnoses.empty());
  world.directories["/share/c"] = {"json"};
  for (const std::string line : {"python -I t.py --cache_dir /share/c", "python -E t.py --cache_dir /share/c",
                                 "python -S t.py --cache_dir /share/c", "./tool --cache_dir /share/c"}) {
    CAPTURE(line);
    world.environment = test::on_the_only_node();
    const RunPlan result = world.run(words(line), installed());
    CHECK(result.argv.back() == local_of("/share/c"));
    CHECK(result.guarded.empty());
  }
  Rules off = installed();
  off.guard = std::nullopt;
  const Argv argv = words("python t.py --cache_dir /share/c");
  CHECK(world.run(argv, off).argv.back() == local_of("/share/c"));
  CHECK(world.run(argv, off).set.empty());
  world.directories["/share/c"] = {"json", "features"};
  CHECK(world.run(argv, off).argv == argv);
  CHECK(test::codes(world.run(argv, off)) == "SF420");
  world.directories["/share/c"] = {"json"};
  world.environment.emplace_back("HF_HUB_OFFLINE=1");
  CHECK(world.run(argv, off).argv == argv);
  world.environment.back() = "HF_DATASETS_CACHE=/share/d";
  CHECK(guard_of(world.run(argv, off), "HF_DATASETS_CACHE") == local_of("/share/d"));
  CHECK(guard_of(world.run(argv, installed()), "HF_DATASETS_CACHE").empty());
  CHECK(world.run(argv, installed()).guarded.size() == 2);
}

TEST_CASE("a container that sees the node's own disk under its own name: its flag is rewritten") {
  World world;
  world.directories["/share/c"] = {"json", "models--gpt2"};
  const std::string here = local_of("/share/c");
  struct Row {
    std::string before, value, there; ///< empty: left
  };
  const std::string binds = "-v /share:/share -v /var/cache/sharefs:/var/cache/sharefs ";
  const std::vector<Row> rows = {
      {"docker run --rm " + binds + "img torchrun t.py", "/share/c", here},
      {"docker run --volume=/share:/share --volume=/var/cache:/var/cache img", "/share/c", here},
      {"podman run -v /share:/share:rw -v /var:/var img", "/share/c", here},
      {"docker run -v /share:/share -v /var:/host img", "/share/c", ""}, // by another name
      {"nohup apptainer exec --nv -B /var/cache/sharefs x.sif python t.py", "/share/c", here},
      {"apptainer run --bind=/share,/var x.sif", "/share/c", here},
      {"docker run -v /share:/share img python t.py", "/share/c", ""}, // it does not see the disk
      {"docker run -v /share:/share -v /var:/var:ro img", "/share/c", ""},
      {"docker run -v /var:/var img python t.py", "/share/c", ""}, // a directory of the image
      {"docker run -u 12345 " + binds + "img", "/share/c", ""},
      {"docker run --user alice " + binds + "img", "/share/c", ""}, // whose number only the image knows
      {fmt::format("docker run -u {}:100 {}img", ::geteuid(), binds), "/share/c", here},
      {"docker exec " + binds + "box", "/share/c", ""},
      {"srun -N 2 docker run " + binds + "img", "/share/c", ""}, // made on this host only
      {"xargs docker run " + binds + "img", "/share/c", ""},
      {"docker run " + binds + "img python -m fastchat.train.train", "/share/c", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.before);
    for (const std::string joint : {" ", "="}) {
      const std::string flag = " --cache_dir" + joint;
      const Argv argv = words(row.before + flag + row.value);
      const RunPlan result = world.run(argv, installed());
      CHECK(result.argv == words(row.before + flag + (row.there.empty() ? row.value : row.there)));
      CHECK(test::codes(result) == "SF404");
      CHECK(result.set.empty());
      CHECK(result.directories.contains(here) == !row.there.empty());
      CHECK(result.links.size() == (row.there.empty() ? 0 : 1));
      if (!result.links.empty())
        CHECK(result.links.at(here + "/models--gpt2") == row.value + "/models--gpt2");
    }
  }
  world.environment.emplace_back("HF_HUB_OFFLINE=1");
  const Argv offline = words("docker run " + binds + "img --cache_dir /share/c");
  CHECK(world.run(offline, installed()).argv == offline);
}

TEST_CASE("caches that this user may not read, or that do not answer, are left") {
  World world;
  Rules off;
  const Argv argv = words("python t.py --cache_dir /share/c");
  world.unreadable["/share/c"] = EACCES;
  CHECK(test::codes(world.run(argv, off)) == "SF409");
  world.unreadable["/share/c"] = ETIMEDOUT;
  CHECK(test::codes(world.run(argv, off)) == "SF409");
  CHECK(world.run(argv, off).argv == argv);
}

TEST_CASE("flags whose whole directory is node-local") {
  World world;
  struct Row {
    std::string line;
    bool moved;
  };
  const std::vector<Row> rows = {
      {"python t.py --data_cache_dir /share/c", true},
      {"python t.py --dataset_cache_dir=/share/c", true},
      {"python -m FlagEmbedding.finetune.embedder.x --cache_path /share/c", true},
      {"axolotl train x.yaml --dataset_prepared_path /share/c", true},
      {"axolotl preprocess x.yaml --dataset_prepared_path /share/c", false},
      {"python t.py --data_cache_dir /share/c --model_cache_dir /share/c", false},
      {"python t.py --data_cache_dir /share/c --model_name_or_path /share/c/gpt2", false},
      {"python t.py --data_cache_dir /share/c --model_name_or_path /share/gpt2", true},
      {"python t.py --output_dir /share/c --tokenized_path /share/c --data-cache-path /share/c", false},
      {"hf download x --cache-dir /share/c", false},
      {"python t.py -- --data_cache_dir /share/c", false},
      {"torchrun --log_dir /share/c t.py", false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.line);
    const RunPlan result = world.run(words(row.line), installed());
    CHECK((result.argv != words(row.line)) == row.moved);
    CHECK(result.diagnoses.empty());
  }
  world.directories["/share/c"] = {"abc123"};
  const Argv prepared = words("axolotl train x.yaml --dataset_prepared_path /share/c");
  CHECK(world.run(prepared, installed()).argv == prepared);
}

TEST_CASE("variables of node-local caches are moved, given or by default; others stay") {
  World world;
  world.mounts.emplace_back("/home", "nfs");
  world.environment.emplace_back("HF_HOME=/share/hf");
  world.environment.emplace_back("HF_HUB_CACHE=/share/hub");
  const RunPlan result = world.run(words("python t.py"), installed());
  CHECK(guard_of(result, "HF_MODULES_CACHE").empty()); // the guard publishes what is made there
  CHECK(guard_of(world.run(words("python t.py"), {}), "HF_MODULES_CACHE") == local_of("/share/hf/modules"));
  CHECK(guard_of(result, "TRITON_CACHE_DIR") == local_of("/home/alice/.triton/cache"));
  CHECK(guard_of(result, "TVM_FFI_CACHE_DIR") == local_of("/home/alice/.cache/tvm-ffi"));
  for (const char* name : {"HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "HF_DATASETS_CACHE", "TMPDIR"})
    CHECK(guard_of(result, name).empty());
  CHECK(result.diagnoses.empty());
  const RunPlan tool = world.run(words("./some-tool"), installed()); // defaults of Python programs only
  CHECK(tool.set.size() == 1);
}

TEST_CASE("settings in a cache are needed where they are") {
  World world;
  world.environment.emplace_back("MPLCONFIGDIR=/share/m");
  CHECK(guard_of(world.run(words("python t.py"), installed()), "MPLCONFIGDIR") == local_of("/share/m"));
  world.directories["/share/m"] = {"fontlist-v390.json", "matplotlibrc"};
  CHECK(guard_of(world.run(words("python t.py"), installed()), "MPLCONFIGDIR").empty());
}

TEST_CASE("offline: modules that lie there are needed, where no guard brings them") {
  World world;
  world.environment.emplace_back("HF_MODULES_CACHE=/share/m");
  world.environment.emplace_back("TRITON_CACHE_DIR=/share/t");
  world.environment.emplace_back("HF_HUB_OFFLINE=1");
  const RunPlan result = world.run(words("python t.py"), {});
  CHECK(guard_of(result, "HF_MODULES_CACHE").empty());
  CHECK(guard_of(result, "TRITON_CACHE_DIR") == local_of("/share/t"));
}

TEST_CASE("what lies below TMPDIR by default is judged by it, and TMPDIR on the share is one line") {
  World world;
  world.environment.emplace_back("TMPDIR=/share/tmp");
  for (const char* entry : {"HF_METRICS_CACHE=/share/m", "MODEL_CACHE=/share/n", "CACHE=/share/o", "X_CACHE_URL=s3://b",
                            "NEW_LIBRARY_CACHE=/share/p", "MY_CACHE_DIR=/share/mine"})
    world.environment.emplace_back(entry);
  const RunPlan result = world.run(words("python t.py"), installed());
  CHECK(guard_of(result, "TORCHINDUCTOR_CACHE_DIR") == local_of("/share/tmp/torchinductor"));
  CHECK(test::codes(result) == "SF406");
  CHECK(result.diagnoses[0].subject == "MY_CACHE_DIR, NEW_LIBRARY_CACHE, TMPDIR");
  CHECK(test::codes(world.run(words("python t.py"), of_user("TMPDIR", false))) == "SF406");
  world.environment.resize(world.environment.size() - 2);
  CHECK(world.run(words("python t.py"), of_user("TMPDIR", false)).diagnoses.empty());
}

TEST_CASE("caches.when: racy leaves what locks protect") {
  World world;
  Rules racy = installed();
  racy.only_racy = true;
  CHECK(world.run(words("python t.py --cache_dir /share/c"), racy).guarded.empty());
  const Argv flag = words("python t.py --data_cache_dir /share/c");
  CHECK(world.run(flag, racy).argv == flag);
  CHECK(world.run(flag, installed()).argv != flag);
  world.excludes = false;
  CHECK(world.run(flag, racy).argv != flag);
}

TEST_CASE("no directory of this node can hold what a word names: an error; a default: a warning") {
  World world;
  world.local = LocalRoot{"", "all disks are full", "make room"};
  const RunPlan given = world.run(words("python t.py --data_cache_dir /share/c"), installed());
  REQUIRE(given.diagnoses.size() == 1);
  CHECK(given.diagnoses[0].code == "SF405");
  CHECK(given.diagnoses[0].severity == Severity::error);
  world.environment.emplace_back("HF_HOME=/share/hf");
  const RunPlan implied = world.run(words("python t.py"), installed());
  REQUIRE(implied.diagnoses.size() == 1);
  CHECK(implied.diagnoses[0].severity == Severity::warning);
}

TEST_CASE("attack: whoever takes the names of a user's directories stops no launch of that user") {
  World world;
  world.local = LocalRoot{"", "/cache/alice belongs to somebody else", "as root, remove it", false, true};
  world.environment.emplace_back("TRITON_CACHE_DIR=/share/t");
  const auto wish = GENERATE(as<std::string>(), "--cache_dir", "--data_cache_dir");
  const auto python = GENERATE(as<std::string>(), "python", "python -I");
  const Argv argv = words(python + " t.py " + wish + " /share/c");
  const RunPlan result = world.run(argv, of_user(wish, true));
  CHECK(std::ranges::all_of(result.diagnoses, [](const Diagnosis& one) { return one.severity != Severity::error; }));
  CHECK(test::codes(result).starts_with("SF405"));
  CHECK(result.argv == argv);
  CHECK(result.directories.empty());
  CHECK(result.guarded.size() == (python == "python" ? 1 : 0)); // there, under a name of its own
}

TEST_CASE("nodes that are not known now: sharefs decides there, in front of the program") {
  World world;
  world.environment.emplace_back("TRITON_CACHE_DIR=/share/t");
  const Argv argv = words("env A=1 srun -N 2 python t.py --cache_dir /share/c");
  const RunPlan result = world.run(argv, installed());
  CHECK(result.argv == words("env A=1 srun -N 2 sharefs run --node -- python t.py --cache_dir /share/c"));
  CHECK(guard_of(result, "TRITON_CACHE_DIR").empty());
  CHECK_FALSE(guard_of(result, "PYTHONPATH").empty());
  Rules nowhere = installed();
  nowhere.node.clear();
  CHECK(test::codes(world.run(argv, nowhere)) == "SF421");
  const World plain; // only the guard, which srun hands on
  CHECK(plain.run(argv, installed()).argv == argv);
  const Argv batch = words("sbatch job.sh");
  CHECK(world.run(batch, installed()).argv == batch);
  CHECK(world.run(batch, installed()).set.size() == 1);
}

TEST_CASE("what loses the guard is named in one line, in texts and in scripts that are named") {
  World world;
  world.files["/job/run.sh"] = "#!/bin/bash\nsource env.sh\nssh n2 python t.py\nsudo python t.py\n";
  world.files["/job/env.sh"] = "export PYTHONPATH=/opt/x\n";
  world.files["/job/good.sh"] =
      "#!/bin/bash\nexport PYTHONPATH=/opt/x:$PYTHONPATH\ncp train.py x; echo sudo\npython t.py\n";
  const RunPlan script = world.run(words("bash run.sh"), installed());
  REQUIRE(script.diagnoses.size() == 1);
  CHECK(script.diagnoses[0].code == "SF402");
  CHECK(script.diagnoses[0].subject == "run.sh:3: ssh");
  CHECK(script.diagnoses[0].message.find("and 2 places like it") != std::string::npos);
  CHECK(test::codes(world.run(words("./run.sh"), installed())) == "SF402");
  CHECK(test::codes(world.run(words("sbatch -N 2 run.sh"), installed())) == "SF402");
  CHECK(test::codes(world.run({"bash", "-c", "env -i python t.py"}, installed())) == "SF407");
  CHECK(test::codes(world.run({"sbatch", "--wrap", "docker run img python t.py"}, installed())) == "SF404");
  CHECK(world.run(words("bash good.sh"), installed()).diagnoses.empty());
  CHECK(world.run(words("bash missing.sh"), installed()).diagnoses.empty());
  world.files["/job/run.sh"] += std::string(200'000, '#'); // no script that a person has written
  CHECK(world.run(words("bash run.sh"), installed()).diagnoses.empty());
}

TEST_CASE("files of variables that a launcher reads, and archives of Python, can lose the guard") {
  World world;
  world.files["/job/.env"] = "A=1\nPYTHONPATH=src\n";
  world.files["/job/other"] = "PYTHONPATH=src:$PYTHONPATH\n";
  world.files["/job/x/.envrc"] = "export PYTHONPATH=$PWD\n";
  world.files["/job/a.pyz"] = std::string("#!/usr/bin/python3 -sE\nPK\3\4\0\0", 28);
  world.files["/job/b.pyz"] = std::string("#!/usr/bin/env python3\nPK\3\4\0\0", 29);
  for (const std::string line : {"pipenv run python t.py", "dotenv run -- python t.py", "srun honcho run python t.py",
                                 "direnv exec x python t.py", "bash -c 'pipenv run python t.py'", "./a.pyz"}) {
    CAPTURE(line);
    Argv argv = words(line);
    if (argv[0] == "bash")
      argv = {"bash", "-c", "pipenv run python t.py"};
    CHECK(test::codes(world.run(argv, installed())) == "SF407");
  }
  for (const std::string line :
       {"uv run --env-file .env python t.py", "pip install pipenv", "dotenv -f other run python t.py",
        "direnv exec y python t.py", "pipenv lock", "./b.pyz"}) {
    CAPTURE(line);
    CHECK(world.run(words(line), installed()).diagnoses.empty());
  }
}

TEST_CASE("scripts in loops, lists and copies, and those that are found as commands, are read") {
  World world;
  world.environment.emplace_back("PATH=/opt/bin:/usr/bin");
  world.files["/opt/bin/wrap"] = "#!/bin/bash\nunset PYTHONPATH\nexec python t.py \"$@\"\n";
  world.files["/job/lost.sh"] = "export PYTHONPATH=/x\npython t.py\n";
  world.files["/job/good.sh"] = "python t.py\n";
  world.files["/job/job.template"] = "#!/bin/bash\n#SBATCH --export=NONE\npython t.py\n";
  world.files["/job/lost.env"] = "PYTHONPATH=/x\n";
  for (const std::string line :
       {"for s in good.sh lost.sh; do bash $s; done", "S=(good.sh lost.sh); for s in ${S[@]}; do bash $s; done",
        "for e in lost.env; do source $e; done; python t.py", "parallel bash ::: good.sh lost.sh",
        "echo lost.sh | xargs bash", "printf '%s\\n' good.sh lost.sh | xargs -n 1 bash",
        "cat > $S <<< 'export PYTHONPATH=/x; python t.py'; bash $S",
        "sed s/a/b/ job.template > j.slurm; sbatch j.slurm", "sed s/a/b/ job.template | sbatch",
        "cp job.template j.sh; sbatch j.sh", "wrap --x", "srun -N 2 wrap"}) {
    CAPTURE(line);
    CHECK(test::codes(world.run({"bash", "-c", line}, installed())) == "SF407");
  }
  for (const std::string line : {"wrap --x", "srun -N 2 wrap", "nohup wrap"}) {
    CAPTURE(line);
    CHECK(test::codes(world.run(words(line), installed())) == "SF407");
  }
  for (const std::string line :
       {"for s in good.sh; do bash $s; done", "bash -n lost.sh; shellcheck lost.sh; python t.py",
        "sed s/a/b/ good.sh > j.sh; bash j.sh", "cp t.py u.py; python u.py",
        "sed s/a/b/ job.template > notes.md; python t.py"}) {
    CAPTURE(line);
    CHECK(world.run({"bash", "-c", line}, installed()).diagnoses.empty());
  }
}

TEST_CASE("a shell or a batch system reads its commands from the file that is its stdin; other programs read data") {
  World world;
  world.files["/job/run.sh"] = "env -i python t.py\n";
  world.input = "/job/run.sh";
  for (const std::string line : {"bash", "/bin/sh -s x", "srun -n 2 zsh", "sbatch", "bash /dev/stdin"}) {
    CAPTURE(line);
    CHECK(world.run(words(line), installed()).diagnoses.size() == 1);
  }
  for (const std::string line : {"python", "python t.py", "bash other.sh", "mytool"}) {
    CAPTURE(line);
    CHECK(world.run(words(line), installed()).diagnoses.empty());
  }
}

TEST_CASE("PYTHONPATH is left alone where a script has a default for it, and it was not set") {
  World world;
  world.files["/job/run.sh"] = "[ -z \"$PYTHONPATH\" ] && export PYTHONPATH=src\npython t.py\n";
  world.files["/job/GNUmakefile"] = "PYTHONPATH ?= src\nt:\n\tpython t.py\n";
  for (const Argv& argv :
       {words("bash run.sh"), words("make t"), Argv{"sh", "-c", "PYTHONPATH=${PYTHONPATH:-a} python t.py"}}) {
    CAPTURE(argv);
    const RunPlan result = world.run(argv, installed());
    CHECK(guard_of(result, "PYTHONPATH").empty());
    CHECK(test::codes(result) == "SF407");
  }
  world.environment.emplace_back("PYTHONPATH=/own");
  const RunPlan result = world.run(words("bash run.sh"), installed());
  CHECK(guard_of(result, "PYTHONPATH") == "/usr/share/sharefs/guard:/own");
  CHECK(test::codes(result).empty());
}

TEST_CASE("a script that goes to its own directory starts others there") {
  World world;
  world.files["/job/a/start.sh"] = "cd \"$(dirname \"$0\")\"; bash run.sh\n";
  world.files["/job/a/run.sh"] = "env -i python t.py\n";
  CHECK(test::codes(world.run(words("bash a/start.sh"), installed())) == "SF407");
}

TEST_CASE("an unknown option is only noted where the guard gets hold of the program") {
  const World world;
  const Argv argv = words("torchrun --frobnicate t.py --data_cache_dir /share/c");
  const RunPlan result = world.run(argv, installed());
  CHECK(result.argv == argv);
  CHECK_FALSE(guard_of(result, "PYTHONPATH").empty());
  REQUIRE(result.diagnoses.size() == 1);
  CHECK(result.diagnoses[0].severity == Severity::info);
  CHECK(world.run(argv).diagnoses.at(0).severity == Severity::warning);
}

TEST_CASE("argv is byte-equal where nothing changes, whatever it holds") {
  const World world;
  const Argv argv{"python", "t.py", "", "--cache_dir", "/share/c", "a\nb", "--", "*", "\xff", "--x="};
  CHECK(world.run(argv, installed()).argv == argv);
  CHECK(world.run({"http://h/mpirun", "-np", "2", "python", "t.py"}, installed()).argv.front() == "http://h/mpirun");
}

TEST_CASE("edits: words in front, and bytes inside, by their places in the original") {
  const Argv argv{"a", "b=1", "c"};
  Decisions decisions(3);
  decisions[0].edits = {{1, 2, 3, "22"}};
  decisions[1].edits = {{1, 3, 3, ",x"}, {0, 0, 0, "", {"p", "q"}}};
  decisions[2].edits = {{1, 3, 3, ",y"}, {3, 0, 0, "", {"end"}}, {0, 0, 0, "", {"p", "q"}}};
  CHECK(edited(argv, decisions) == Argv{"p", "q", "a", "b=22,x,y", "c", "end"});
}
