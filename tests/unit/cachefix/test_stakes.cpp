// Decided by what is at stake: who builds, whether locks exclude, what lies there, whose flag it is.
#include "given.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::cachefix;
using test::codes;
using test::local_of;
using test::words;
using test::World;

namespace {

const std::string k_line = "python train.py --cache_dir /share/c";
const std::string k_moved = "python train.py --cache_dir " + local_of("/share/c");

std::string joined(const Argv& argv) {
  return join(argv, " ");
}

bool is_kept(const Sanitized& result, const std::string& flag) {
  for (const Decision& one : result.kept())
    if (one.flag == flag && !one.reason.empty())
      return true;
  return false;
}

} // namespace

TEST_CASE("who builds? offline a complete dataset is only read: left, and said") {
  for (const std::string name : {"HF_DATASETS_OFFLINE=1", "HF_HUB_OFFLINE=true", "TRANSFORMERS_OFFLINE=yes"}) {
    CAPTURE(name);
    World world;
    world.environment.push_back(name);
    world.directories["/share/c/json/default-1/0.0.0/abc"] = {"dataset_info.json"};
    const Sanitized left = world.run(words(k_line));
    CHECK(joined(left.argv) == k_line);
    CHECK(is_kept(left, "--cache_dir"));
    CHECK(codes(left) == "SF419");

    Rules seeding;
    seeding.seed = true;
    CHECK(joined(world.run(words(k_line), seeding).argv) == k_moved);
    world.directories.clear(); // nothing is there to be read: what is built, races
    CHECK(joined(world.run(words(k_line)).argv) == k_moved);
  }
  World online;
  online.environment = {"HOME=/home/alice", "HF_DATASETS_OFFLINE=0", "HF_HUB_OFFLINE=1"};
  online.directories["/share/c"] = {"json"};
  CHECK(joined(online.run(words(k_line)).argv) == k_moved); // the datasets library's own switch goes first
}

TEST_CASE("who builds? offline, what launches that failed left is nothing to read") {
  World world;
  world.environment = {"HOME=/home/alice", "HF_DATASETS_OFFLINE=1"};
  world.directories["/share/c/json/default-1/0.0.0"] = {"abc.incomplete", "abc_builder.lock"};
  world.directories["/share/c/hub/datasets--a--b/refs"] = {"main"};
  const Sanitized moved = world.run(words(k_line));
  CHECK(joined(moved.argv) == k_moved);
  CHECK(codes(moved) == "SF410");
  world.directories["/share/c/csv/default-2/0.0.0/abc"] = {"dataset_info.json"};
  CHECK(joined(world.run(words(k_line)).argv) == k_line);
  world.directories.erase("/share/c/csv/default-2/0.0.0/abc");
  world.directories["/share/c/downloads"] = {"0123"};
  world.files["/share/c/downloads/0123"] = "x";
  CHECK(joined(world.run(words(k_line)).argv) == k_line);
}

TEST_CASE("who builds? evaluate has a switch of its own, and finds its code among the modules") {
  World world;
  world.environment = {"HOME=/home/alice", "HF_EVALUATE_OFFLINE=1", "HF_DATASETS_CACHE=/share/ds",
                       "HF_MODULES_CACHE=/share/modules"};
  world.directories["/share/ds/json/default-1/0.0.0/abc"] = {"dataset_info.json"};
  world.directories["/share/modules/evaluate_modules/metrics/evaluate-metric--same/abc"] = {"same.py"};
  const Sanitized result = world.run(words("python train.py"));
  CHECK(result.set.size() == 1);
  CHECK(result.set.contains("HF_DATASETS_CACHE"));
  CHECK(codes(result) == "SF422 SF419");
}

TEST_CASE("who builds? variables of the datasets library stay offline, kernels do not") {
  World world;
  world.environment = {"HOME=/home/alice", "HF_DATASETS_OFFLINE=1", "HF_DATASETS_CACHE=/share/ds",
                       "HF_MODULES_CACHE=/share/modules", "TRITON_CACHE_DIR=/share/t"};
  world.directories["/share/ds/json/default-1/0.0.0/abc"] = {"dataset_info.json"};
  world.directories["/share/modules/datasets_modules/datasets/squad/abc"] = {"squad.py"};
  const Sanitized result = world.run(words("python train.py"));
  CHECK(result.set.size() == 1);
  CHECK(result.set.at("TRITON_CACHE_DIR") == local_of("/share/t"));
  CHECK(codes(result) == "SF419 SF419");
}

TEST_CASE("does the lock exclude? caches.when: racy leaves what is safe, and the reason says which it is") {
  World world;
  world.environment.emplace_back("HF_DATASETS_CACHE=/share/ds");
  world.environment.emplace_back("TRITON_CACHE_DIR=/share/t");
  Rules racy;
  racy.when = When::racy;
  world.lock_scope = sys::LockScope::all_hosts;
  const Sanitized safe = world.run(words(k_line), racy);
  CHECK(joined(safe.argv) == k_line);
  CHECK(is_kept(safe, "--cache_dir"));
  CHECK(is_kept(safe, "HF_DATASETS_CACHE"));
  CHECK(safe.set.size() == 1); // Triton takes no file locks
  const Sanitized always = world.run(words(k_line));
  CHECK(joined(always.argv) == k_moved);
  CHECK(always.changes().front().reason.find("so it is for speed") != std::string::npos);
  world.lock_scope = sys::LockScope::this_host;
  const Sanitized moved = world.run(words(k_line), racy);
  CHECK(joined(moved.argv) == k_moved);
  CHECK(moved.changes().front().reason.find("without `nolock` they would") != std::string::npos);
}

TEST_CASE("what lies there? what no library made is left and warned about") {
  struct Row {
    std::vector<std::string> names;
    bool left;
  };
  const std::vector<Row> rows = {
      {{"models--a--b", "json", "csv", "org___name", "downloads", "_share_c_json.lock", ".locks"}, false},
      {{"state.json", "data-00000-of-00001.arrow", "dataset_info.json"}, true}, // save_to_disk
      {{"features.npy"}, true},
      {{"json", "tokenizer.model"}, true},
      {{"checkpoint-500"}, true},
      {{"cached_train_BertTokenizer_128"}, true},
      {{"squad"}, false}, // SQUAD/plain_text/1.0.0, below
      {{}, false},
  };
  for (const Row& row : rows) {
    CAPTURE(join(row.names, " "));
    World world;
    world.directories["/share/c"] = row.names;
    world.directories["/share/c/squad/plain_text/1.0.0/abc"] = {"dataset_info.json"};
    const Sanitized result = world.run(words(k_line));
    CHECK(joined(result.argv) == (row.left ? k_line : k_moved));
    CHECK((codes(result) == "SF420") == row.left);
    Rules asked;
    asked.user = {{"", "--cache_dir", true, "--local"}};
    CHECK(joined(world.run(words(k_line), asked).argv) == k_moved);
  }
}

TEST_CASE("a path that outputs are made of is left") {
  World world;
  world.files["/job/conf/a.yaml"] = "cache_dir: /share/c\nlocal_run_dir: ${cache_dir}/run\n";
  const std::string line = "python train.py --config-path conf --config-name a";
  const Sanitized result = world.run(words(line));
  CHECK(joined(result.argv) == line);
  CHECK(codes(result) == "SF420");
  const ScriptResult script = world.script(
      "job.sh", "export HF_DATASETS_CACHE=/share/d\nOUT=${HF_DATASETS_CACHE}/out\npython train.py --output_dir $OUT\n");
  CHECK(script.text == "export HF_DATASETS_CACHE=/share/d\nOUT=${HF_DATASETS_CACHE}/out\nHF_DATASETS_CACHE=" +
                           local_of("/share/d") + " python train.py --output_dir $OUT\n");
}

TEST_CASE("plain tools read no caches, and without any explicit cache no command is stopped") {
  World world;
  world.mounts.emplace_back("/home", "nfs");
  for (const std::string line : {"true", "echo hello", "ls /share"}) {
    const Sanitized result = world.run(words(line));
    CHECK(result.set.empty());
    CHECK(result.directories.empty());
  }
  world.local = {"", "/var/tmp cannot be written", "as root, mend it"};
  const Sanitized implied = world.run(words("python train.py"));
  CHECK(implied.set.empty());
  CHECK(codes(implied) == "SF405");
  CHECK(implied.diagnoses[0].severity == Severity::warning);
  const Sanitized asked = world.run(words(k_line));
  CHECK(codes(asked) == "SF405");
  CHECK(asked.diagnoses[0].severity == Severity::error);
}

TEST_CASE("a console script of Python reads caches; any other program only what is named") {
  World world;
  world.mounts.emplace_back("/home", "nfs");
  world.environment.emplace_back("PATH=/opt/env/bin:/usr/bin");
  world.files["/opt/env/bin/my_train"] = "#!/opt/env/bin/python3.11\n";
  world.files["/usr/bin/tool"] = "\x7f"
                                 "ELF";
  CHECK(world.run(words("my_train")).set.contains("HF_DATASETS_CACHE"));
  CHECK(world.run(words("tool")).set.empty());
  world.environment.emplace_back("HF_DATASETS_CACHE=/share/ds");
  CHECK(world.run(words("tool")).set.size() == 1);
}

TEST_CASE("nodes that are not known at launch: sharefs decides there") {
  World world;
  Rules rules;
  rules.node = {"/usr/bin/sharefs", "run", "--node", "--"};
  const std::string there = "/usr/bin/sharefs run --node -- ";
  const auto run = [&](const std::string& line) { return joined(world.run(words(line), rules).argv); };
  CHECK(run("srun -N4 " + k_line) == "srun -N4 " + there + k_line);
  CHECK(run("srun -N4 --export=NONE env A=1 " + k_line) == "srun -N4 --export=NONE " + there + "env A=1 " + k_line);
  CHECK(run("srun -N4 conda run -n e " + k_line) == "srun -N4 " + there + "conda run -n e " + k_line);
  CHECK(run("srun -N4 python train.py --output_dir /share/o") == "srun -N4 python train.py --output_dir /share/o");
  CHECK(run("mpirun -np 2 " + k_line) == "mpirun -np 2 " + k_moved); // not in an allocation: here
  const Argv wrapped = {"sbatch", "--wrap", "cd /x; A=1 exec " + k_line};
  CHECK(world.run(wrapped, rules).argv.back() == "cd /x; A=1 exec " + there + k_line);
  const Argv shell = {"srun", "bash", "-c", "torchrun train.py --cache_dir /share/c"};
  CHECK(joined(world.run(shell, rules).argv) == "srun " + there + "bash -c torchrun train.py --cache_dir /share/c");
  world.environment = {"HOME=/home/alice", "SLURM_JOB_ID=7", "SLURM_JOB_NUM_NODES=2"};
  CHECK(run("mpirun -np 2 " + k_line) == "mpirun -np 2 " + there + k_line);
  CHECK(codes(world.run(words("srun " + k_line))) == "SF421"); // sharefs may not be there
  CHECK(joined(world.run(words("srun " + k_line)).argv) == "srun " + k_line);
  world.environment = {"HOME=/home/alice", "SLURM_JOB_ID=7", "SLURM_JOB_NUM_NODES=1", "SLURMD_NODENAME=here"};
  CHECK(run("srun " + k_line) == "srun " + k_moved);
}

TEST_CASE("several values in one word are changed from the right: no order of decisions corrupts it") {
  World world;
  world.environment = test::on_the_only_node();
  const Argv argv = words("srun --export=ALL,TRITON_CACHE_DIR=/share/t,HF_DATASETS_CACHE=/share/d python train.py");
  CHECK(world.run(argv).argv[1] ==
        "--export=ALL,TRITON_CACHE_DIR=" + local_of("/share/t") + ",HF_DATASETS_CACHE=" + local_of("/share/d"));
}

TEST_CASE("a changed copy lies where its user can write and all nodes can read") {
  World world;
  world.files["/share/conf/a.json"] = R"({"cache_dir": "/share/c"})";
  world.files["/job/run_clm.py"] = "#facts hf_arguments required datasets=1 models=1";
  const std::string line = "python run_clm.py /share/conf/a.json";
  const auto copy_in = [&](const std::string& before) {
    const Sanitized result = world.run(words(before + line));
    return result.copies.empty() ? codes(result) : parent_path(result.copies[0].path);
  };
  CHECK(copy_in("") == "/share/conf");
  world.read_only = {"/share/conf"};
  CHECK(copy_in("") == "/job");
  world.read_only = {"/share/conf", "/job", "/home/alice"};
  CHECK(copy_in("") == world.local.directory);
  world.files["/job/h"] = "a\nb\n"; // other hosts: it must be shared, and nothing is
  CHECK(copy_in("deepspeed --hostfile h --no_python ").find("SF412") != std::string::npos);
  world.mounts.emplace_back("/home", "nfs");
  world.directories["/home/alice"] = {};
  world.read_only = {"/share/conf"};
  CHECK(copy_in("deepspeed --hostfile h --no_python ") == "/home/alice");
}
