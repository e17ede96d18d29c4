#include "cachefix/launchers/walk.hpp"

#include "base/text.hpp"
#include "given.hpp"
#include "support/catch.hpp"

#include <set>

using namespace sharefs;
using namespace sharefs::cachefix;
using test::words;

namespace {

struct Form {
  std::string line;
  std::string chain;  ///< "conda@0 python@4"
  std::string script; ///< "train.py@5"; empty: none
};

std::string chain_text(const Walk& walk) {
  std::string out;
  for (const ChainLink& link : walk.chain)
    out += (out.empty() ? "" : " ") + link.name + "@" + std::to_string(link.index);
  return out;
}

std::string script_text(const Walk& walk) {
  return walk.programs.empty() ? "" : walk.programs[0].name + "@" + std::to_string(walk.programs[0].index);
}

} // namespace

TEST_CASE("requirement 2: every launch form of the recipes resolves to the right script") {
  const std::vector<Form> rows = {
      {"python train.py --x 1", "python@0", "train.py@1"},
      {"python3.11 -u -W ignore -X dev train.py", "python3.11@0", "train.py@6"},
      {"python -um pkg.train --x", "python@0", "pkg.train@2"},
      {"python -mpkg.train --x", "python@0", "pkg.train@1"},
      {"python -c pass --cache_dir /x", "python@0", "pass@2"},
      {"python", "python@0", "-@0"},
      {"python -u", "python@0", "-@0"},
      {"python --version", "python@0", ""},
      {"torchrun --nnodes=2 --nproc_per_node=8 --rdzv_id=1 --rdzv_backend=c10d --rdzv_endpoint=h:29500 script.py --a",
       "torchrun@0", "script.py@6"},
      {"torchrun --nproc-per-node 8 -m pkg.train", "torchrun@0", "pkg.train@4"},
      {"torchrun --standalone --no-python ./run.sh -x", "torchrun@0", "./run.sh@3"},
      {"python -m torch.distributed.run --nproc_per_node 8 --node_rank 1 program.py --deepspeed ds.json",
       "python@0 torch.distributed.run@2", "program.py@7"},
      {"python -m torch.distributed.launch --use_env --nproc_per_node=4 t.py", "python@0 torch.distributed.launch@2",
       "t.py@5"},
      {"python /opt/env/bin/torchrun --nnodes 1 t.py", "python@0 torchrun@1", "t.py@4"},
      {"deepspeed --hostfile hostfile src/train.py --deepspeed ds.json", "deepspeed@0", "src/train.py@3"},
      {"deepspeed --no_python --hostfile=hostfile --num_nodes=2 --num_gpus 8 run.sh", "deepspeed@0", "run.sh@6"},
      {"deepspeed -H hosts -i worker-0@worker-1:0,2 --master_p 29501 t.py", "deepspeed@0", "t.py@7"},
      {"deepspeed --num_acc 4 --module pkg.train a", "deepspeed@0", "pkg.train@4"},
      {"accelerate launch --multi_gpu --num_processes 8 --mixed-precision bf16 t.py --num_processes 3", "accelerate@0",
       "t.py@7"},
      {"accelerate launch --config_file c.yaml -m pkg.train", "accelerate@0", "pkg.train@5"},
      {"python -m accelerate.commands.launch --num_processes=2 t.py", "python@0 accelerate@2", "t.py@4"},
      {"conda run -n llm_train python src/train_bash.py --deepspeed d", "conda@0 python@4", "src/train_bash.py@5"},
      {"conda run --no-capture-output --cwd /x -n e -- python t.py", "conda@0 python@8", "t.py@9"},
      {"micromamba run -n e --cwd /x torchrun t.py", "micromamba@0 torchrun@6", "t.py@7"},
      {"env -u B A=1 C= python t.py", "env@0 python@5", "t.py@6"},
      {"nohup nice -n 5 time -p timeout -k 5 1h stdbuf -oL taskset -c 0-3 numactl -N 0 -m 0 python -u t.py",
       "nohup@0 nice@1 time@4 timeout@6 stdbuf@10 taskset@12 numactl@15 python@20", "t.py@22"},
      {"srun --jobid 7 -N2 -n 16 --gres=gpu:8 --kill-on-bad-exit=1 -l python t.py", "srun@0 python@9", "t.py@10"},
      {"srun --stepmgr --tasks-per-node 2 --cpu_bind none --bcast-exclude NONE python t.py", "srun@0 python@8",
       "t.py@9"},
      {"srun -W 60 --mpi=pmix --cpu-bind none python -m m", "srun@0 python@6", "m@8"},
      {"sbatch -N 2 --exclusive job.sh --cache_dir /x", "sbatch@0", "job.sh@4"},
      {"mpirun --allow-run-as-root -np 16 -H a:8,b:8 -bind-to none -x PATH -mca pml ob1 python t.py",
       "mpirun@0 python@13", "t.py@14"},
      {"mpirun -rf ranks -use-regexp -n 1 python t.py", "mpirun@0 python@6", "t.py@7"},
      {"mpiexec -topolib hwloc -profile -n 1 python t.py", "mpiexec@0 python@6", "t.py@7"},
      {"mpiexec -n 4 -ppn 2 -f hosts -genv K V python t.py", "mpiexec@0 python@10", "t.py@11"},
      {"bash -x run.sh a b", "bash@0", "run.sh@2"},
      {"bash - run.sh a b", "bash@0", "run.sh@2"},
      {"time --output-file o numactl -c 0 python t.py", "time@0 numactl@3 python@6", "t.py@7"},
      {"llamafactory-cli train cfg.yaml", "", "llamafactory-cli@0"},
      {"python -m cProfile -o p t.py", "python@0", "cProfile@2"},
      {"true", "", "true@0"},
      {"./train.py --cfg conf.py", "", "./train.py@0"},
  };
  for (const Form& row : rows) {
    CAPTURE(row.line);
    const Walk found = walk(words(row.line), "/w");
    CHECK(chain_text(found) == row.chain);
    CHECK(script_text(found) == row.script);
  }
}

TEST_CASE("requirement 3: an unknown launcher option is never guessed, and the program only gets its environment") {
  for (const std::string line :
       {"torchrun --frobnicate x train.py", "deepspeed --hostfile h --new_flag train.py",
        "conda run --weird python t.py", "srun --made-up=1 python t.py", "mpirun -strange python t.py",
        "python --jit train.py", "torchrun --r 3 train.py", "env --nope python t.py", "nohup --what python t.py",
        "srun -N", "mpirun --app file", "mpiexec -configfile file", "srun --quotatype=spot -N 2 python t.py",
        "/data/share/al/srun --made-up python t.py"}) {
    CAPTURE(line);
    const Walk found = walk(words(line), "/w");
    CHECK_FALSE(found.understood);
    CHECK_FALSE(found.elsewhere);
    REQUIRE(found.programs.size() == 1);
    CHECK(found.programs[0].begin == found.programs[0].end);
    REQUIRE(found.problems.size() == 1);
    CHECK(found.problems[0].code == "SF401");
  }
}

TEST_CASE("programs that run programs in a way that is not known only get their environment, and nothing is said") {
  for (const std::string line : {"nsys profile -o x python t.py", "xargs python t.py", "site_wrapper python t.py",
                                 "mywrap --gpus 2 torchrun t.py", "uv run train.py", "poetry run python t.py",
                                 "make train.sh", "find . -exec python x ;"}) {
    CAPTURE(line);
    const Walk found = walk(words(line), "/w");
    CHECK_FALSE(found.understood);
    CHECK_FALSE(found.elsewhere);
    CHECK(found.problems.empty());
    REQUIRE(found.programs.size() == 1);
    CHECK(found.programs[0].python);
  }
}

TEST_CASE("what starts where this environment does not count says so; what runs nothing there is silent") {
  struct Row {
    std::string line, says;
  };
  const std::vector<Row> rows = {
      {"ssh node2 python t.py", "`ssh` runs its command on another machine"},
      {"pdsh -w n[1-4] bash run.sh", "`pdsh` runs its command on another machine"},
      {"sudo -E python t.py", "`sudo` runs its command as another user, in an environment of its own"},
      {"tmux new -d x", "`tmux` runs its command in a session of its own, in another environment"},
      {"ray job submit --working-dir . --address x -- python t.py", "`ray` runs its command on another machine"},
      {"nohup ray exec c.yaml x", "`ray` runs its command on another machine"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.line);
    const Walk found = walk(words(row.line), "/w");
    CHECK(found.elsewhere);
    CHECK(found.programs.empty());
    REQUIRE(found.problems.size() == 1);
    CHECK(found.problems[0].code == "SF402");
    CHECK(found.problems[0].says == row.says + ", so it is not guarded");
  }
  const Walk text = walk({"ssh", "n1", "cd /job && torchrun t.py"}, "/w");
  CHECK(text.elsewhere);
  for (const std::string line :
       {"ray start --head", "ssh node2 nvidia-smi", "sudo nvidia-smi", "ssh -N -L 1:h:2 n", "tmux ls", "docker ps"}) {
    CAPTURE(line);
    CHECK(walk(words(line), "/w").problems.empty());
  }
}

TEST_CASE("many launchers, and long lines: in time that is linear, and to a limit") {
  std::string line;
  for (int i = 0; i < 1000; ++i)
    line += "nohup ";
  CHECK_FALSE(walk(words(line + "python t.py"), "/w").understood);
  Argv argv = words("torchrun t.py");
  argv.resize(1'000'000, "--lr");
  CHECK(walk(argv, "/w").programs.at(0).end == argv.size());
}

TEST_CASE("what launchers change for the program") {
  const Walk found =
      walk(words("env -C sub -i A=1 conda run --cwd /other/x -n e env -u B C=2 python t.py -- --cache_dir /x"), "/w");
  REQUIRE(found.programs.size() == 1);
  const Program& program = found.programs[0];
  CHECK(program.directory == "/other/x");
  CHECK(program.cleared);
  REQUIRE(program.assigned.size() == 2);
  CHECK(program.assigned[0].name == "A");
  CHECK(program.assigned[1].value == "2");
  CHECK(program.unset == std::vector<std::string>{"B"});
  CHECK(program.end == program.begin); // what stands behind the program's own `--` is no option

  const Walk contexts = walk(words("mpirun -np 1 python a.py : -np 2 -wdir /z python b.py x"), "/w");
  REQUIRE(contexts.programs.size() == 2);
  CHECK(contexts.programs[0].name == "a.py");
  CHECK(contexts.programs[1].directory == "/z");
  REQUIRE(contexts.chain.size() == 4);
  CHECK(contexts.chain[0].command == 3);
  CHECK(contexts.chain[2].command == 10);

  const Walk exported = walk(words("srun --export=HF_HOME=/share/h,X=1 python t.py"), "/w");
  REQUIRE(exported.programs.size() == 1);
  CHECK(exported.programs[0].cleared);
  CHECK(exported.programs[0].assigned[0].value == "/share/h");
}

TEST_CASE("the table: each name stands in a row once, and each word of a row is read") {
  for (const Launcher& launcher : launchers()) {
    INFO(launcher.name);
    std::set<std::string> all;
    for (const std::string& word : split_words(launcher.get("options")))
      for (const KnownOption& option : options_of(word)) {
        INFO(word);
        CHECK(option.means.has_value() == (word.find('@') != std::string::npos));
        for (const std::string& name : option.names) {
          CHECK(all.insert(name).second);
          CHECK(name.starts_with('-'));
          CHECK(name.find_first_of("={}[]@,/ ") == std::string::npos);
        }
      }
  }
}

TEST_CASE("the words of a row's options") {
  const auto options = options_of("-h/--help --x[=] --{a,b_c}= -e/--env==@assign_pair --pid=@information");
  const std::vector<KnownOption> expected = {
      {{"-h", "--help"}, Takes::nothing},
      {{"--x"}, Takes::attached},
      {{"--a"}, Takes::value},
      {{"--b_c"}, Takes::value},
      {{"-e", "--env"}, Takes::two, Means::assign_pair},
      {{"--pid"}, Takes::value, Means::information},
  };
  CHECK(options == expected);
}
