#include "cachefix/script.hpp"

#include "base/text.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::cachefix;

namespace {

/// "2 SF402 ssh; ..."
std::string losses(const std::string& text) {
  std::vector<std::string> all;
  for (const Mention& one : read_script(text).losses)
    all.push_back(std::to_string(one.line) + " " + one.code + " " + one.subject);
  return join(all, "; ");
}

std::string names(const std::vector<Mention>& mentions) {
  std::vector<std::string> all;
  for (const Mention& one : mentions)
    all.push_back(std::to_string(one.line) + " " + one.subject + (one.says.empty() ? "" : " (" + one.says + ")"));
  return join(all, "; ");
}

} // namespace

TEST_CASE("what takes the guard away, in the place of a command only") {
  struct Row {
    std::string text, losses;
  };
  const std::vector<Row> rows = {
      {"env -i python t.py", "1 SF407 env"},
      {"env - PATH=$PATH python t.py", "1 SF407 env"},
      {"env -i hostname", ""},
      {"srun --export=NONE python t.py", "1 SF407 --export=NONE"},
      {"srun --export=ALL,A=1 python t.py", ""},
      {"srun --export=A,B ./train", "1 SF407 --export=A,B"},
      {"#!/bin/bash\n#SBATCH --export=NONE\npython t.py", "2 SF407 --export=NONE"},
      {"#SBATCH -N 2  # two\npython t.py", ""},
      {"#SBATCH --container-image=x\npython t.py", "1 SF404 --container-image=x"},
      {"x=1\nsudo -E python t.py", "2 SF402 sudo"},
      {"sudo nvidia-smi -pm 1", ""},
      {"for h in a b; do ssh $h \"cd $PWD && python t.py\" & done", "1 SF402 ssh"},
      {"ssh $h hostname", ""},
      {"if true; then\n  docker run --rm img python t.py\nfi", "2 SF404 docker"},
      {"OUT=$(apptainer exec img.sif python -c 1)", "1 SF404 apptainer"},
      {"docker pull img && apptainer pull x", ""},
      {"ray job submit -- python t.py", "1 SF402 ray"},
      {"export PYTHONPATH=/opt/x", "1 SF407 PYTHONPATH="},
      {"PYTHONPATH=src python t.py", "1 SF407 PYTHONPATH="},
      {"export PYTHONPATH=\"$PWD:$PYTHONPATH\"", ""},
      {"export PYTHONPATH=$PWD:${PYTHONPATH:-}", ""},
      {"unset PYTHONPATH", "1 SF407 unset PYTHONPATH"},
      {"python -I t.py", "1 SF407 python -I"},
      {"nohup bash -c 'echo x\nenv -i python t.py'", "2 SF407 env"},
      {"cp train.py x; echo torchrun; test -f t.py; git add t.py; echo sudo python t.py; grep ssh t.py", ""},
      {"# sudo python t.py", ""},
      {"echo 'a; sudo python t.py'", ""},
      {"torchrun --nproc_per_node 8 \\\n  t.py \\\n  --note \"use sudo python\"", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(losses(row.text) == row.losses);
  }
}

TEST_CASE("a report of a script: its programs, its caches, and the scripts that it names") {
  const ScriptReport report = read_script("#!/bin/bash\n"
                                          "source env.sh\n"
                                          "export HF_HOME=/share/hf TRITON_CACHE_DIR=$X/t\n"
                                          "conda run -n e torchrun --nproc_per_node=8 train.py --cache_dir /share/c\n"
                                          "bash eval.sh\n"
                                          "python -m pkg --dataset_cache_dir=/share/d > log\n");
  CHECK(names(report.programs) == "4 train.py (conda torchrun); 5 eval.sh (bash); 6 pkg (python)");
  CHECK(names(report.caches) ==
        "3 HF_HOME (/share/hf); 3 TRITON_CACHE_DIR ($X/t); 4 --cache_dir (/share/c); 6 --dataset_cache_dir (/share/d)");
  CHECK(report.scripts == Argv{"env.sh", "eval.sh"});
  CHECK(report.losses.empty());
}

TEST_CASE("texts of any kind are read to their end") {
  for (const std::string text :
       {"", "'", "\"", "\\", "#", "$(", "((((", "a \\\n", "cat <<EOF\n'\nEOF\n", "\x01\xff;;&&||"})
    (void)read_script(text);
  CHECK(read_script(std::string(1U << 20U, 'x')).losses.empty());
}
