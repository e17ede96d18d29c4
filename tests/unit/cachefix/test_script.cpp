#include "cachefix/script.hpp"

#include "base/text.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/scripted_system.hpp"

using namespace sharefs;
using namespace sharefs::cachefix;

namespace {

ScriptReport report_of(const std::string& text, Started how = Started::sourced) {
  test::ScriptedSystem system;
  Facts facts(system, {});
  return read_script(text, facts, {"", how});
}

/// "2 SF402 ssh; ..."
std::string losses(const std::string& text, Started how = Started::sourced) {
  std::vector<std::string> all;
  for (const Mention& one : report_of(text, how).losses)
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
      {"#SBATCH --uenv=x/y:v1\n#SBATCH --environment=ngc\npython t.py", "2 SF404 --environment=ngc"},
      {"#SBATCH -N 2  # two\npython t.py", ""},
      {"srun --container-image=x --no-container-mount-home python t.py", "1 SF404 --container-image=x"},
      {"#SBATCH --container-image=x\npython t.py", "1 SF404 --container-image=x"},
      {"x=1\nsudo -E python t.py", "2 SF402 sudo"},
      {"sudo nvidia-smi -pm 1", ""},
      {"sudo docker ps; sudo -n ssh n1 uptime", ""},
      {"sudo docker run img python t.py", "1 SF404 sudo"},
      {"ssh n1 'cat a.py | wc -l; pkill -f t.py'; ssh n1 \"df; tail -n 3 t.py\"", ""},
      {"ssh n1 'cat a.py; nohup python b'", "1 SF402 ssh"},
      {"ssh n1 \"tmux new -d 'python t.py'\"; ssh n1 \"screen -dm 'htop'\"", "1 SF402 ssh"},
      {"ssh n1 \"A=$((1 - 1)) ls\"", ""},
      {": ${PYTHONPATH:=src}; export PYTHONPATH; python t.py", ""},
      {"test -n \"$PYTHONPATH\" && export PYTHONPATH=src:$PYTHONPATH || export PYTHONPATH=src; python t.py", ""},
      {"[ -z \"$PYTHONPATH\" ] && export PYTHONPATH=src\npython a.py\nPYTHONPATH=src python b.py",
       "3 SF407 PYTHONPATH="},
      {"ssh n1 docker ps\nssh n1 docker run img\nssh n1 'cd x && docker compose up -d'", "2 SF404 ssh; 3 SF402 ssh"},
      {"ssh n1 accelerate env\nssh n1 accelerate launch -m a.b\nssh n1 'A=1 ./train'", "2 SF402 ssh; 3 SF402 ssh"},
      {"ssh n1 'cd x; exec ./t'\nssh n1 '{ ./t; }'\nssh n1 'if command -v python; then ls; fi'\nsudo bash < t.sh",
       "1 SF402 ssh; 2 SF402 ssh; 4 SF402 sudo"},
      {"ssh n1 bash -c 'ls'; ssh n1 timeout 9 ls a.py; ssh n1 torchrun --help; sudo tailscale up", ""},
      {"byobu new -d 'python t.py'\ndask ssh n1\ndask-ssh n1\ndask worker n1:8786",
       "1 SF402 byobu; 2 SF402 dask; 3 SF402 dask-ssh"},
      {"L='python -E'\nC=t.py\nsrun bash -c \"$L $C\"", "1 SF407 python -E"},
      {"for c in 'python a.py' 'python -I b.py'; do\n$c\ndone; for h in $(cat a b); do ls $h; done",
       "1 SF407 python -I"},
      {"A=()\nA+=(\"ssh $h python t.py\")\nfor c in \"${A[@]}\"; do eval \"$c\" & done", "2 SF402 ssh"},
      {"mpirun -H a,b ./build/all_reduce_perf -b 8; mpirun -H a,b /opt/bin/osu_bw", ""},
      {"find . -name a.sh -exec ssh n1 bash {} +", "1 SF402 ssh"},
      {"find . -regex '.*[.]py' -exec ssh n1 bash {} +; zip a.zip '*.py'", "1 SF402 ssh"},
      {"for h in a b; do ssh $h \"cd $PWD && python t.py\" & done", "1 SF402 ssh"},
      {"ssh $h hostname", ""},
      {"if true; then\n  docker run --rm img python t.py\nfi", "2 SF404 docker"},
      {"OUT=$(apptainer exec img.sif python -c 1)", "1 SF404 apptainer"},
      {"x=1\nOUT=\"$(env -i python t.py | tail -1)\"", "2 SF407 env"},
      {"OUT=\"`env -i python t.py`\"; echo \"$(date)\"", "1 SF407 env"},
      {"python t.py `# don't` \\\n  --x\nenv -i python t.py", "3 SF407 env"},
      {"torchrun --nproc_per_node $(nvidia-smi -L | (sort | wc -l)) --no_python python -I t.py", "1 SF407 python -I"},
      {"docker pull img && apptainer pull x", ""},
      {"ray job submit -- python t.py", "1 SF402 ray"},
      {"export PYTHONPATH=/opt/x", "1 SF407 PYTHONPATH="},
      {"PYTHONPATH=src python t.py", "1 SF407 PYTHONPATH="},
      {"export PYTHONPATH=\"$PWD:$PYTHONPATH\"", ""},
      {"export PYTHONPATH=$PWD:${PYTHONPATH:-}", ""},
      {"export PYTHONPATH=$(pwd):$PYTHONPATH", ""},
      {"PYTHONPATH=`realpath .`:$PYTHONPATH python t.py", ""},
      {"(cd src && PYTHONPATH=$(realpath \"$(dirname x)/..\"):$PYTHONPATH python t.py)", ""},
      {"export PYTHONPATH=$(pwd)", "1 SF407 PYTHONPATH="},
      {"unset PYTHONPATH", "1 SF407 unset PYTHONPATH"},
      {"unset ${!PYTHON*}", "1 SF407 unset PYTHONPATH"},
      {"unset ${!CUDA@}", ""},
      {"IFS= read -r PYTHONPATH < path", "1 SF407 read PYTHONPATH"},
      {"for PYTHONPATH in a b; do python t.py; done", "1 SF407 for PYTHONPATH"},
      {"for v in HOME PYTHONPATH; do unset $v; done", "1 SF407 for PYTHONPATH"},
      {"exec -c python t.py", "1 SF407 env"},
      {"printf -v PYTHONPATH x", "1 SF407 printf PYTHONPATH"},
      {"set -gx PYTHONPATH src", "1 SF407 set PYTHONPATH"},
      {"set -gx PYTHONPATH src $PYTHONPATH", ""},
      {"export -n PYTHONPATH", "1 SF407 export PYTHONPATH"},
      {"strace -E PYTHONPATH=src:$PYTHONPATH python t.py", ""},
      {"env -S 'PYTHONPATH=src python t.py'", "1 SF407 PYTHONPATH="},
      {"env -S '-i python' t.py", "1 SF407 env"},
      {"env -S'python -u' t.py", ""},
      {"python -I t.py", "1 SF407 python -I"},
      {"nohup bash -c 'echo x\nenv -i python t.py'", "2 SF407 env"},
      {"cp train.py x; echo torchrun; test -f t.py; git add t.py; echo sudo python t.py; grep ssh t.py", ""},
      {"# sudo python t.py", ""},
      {"echo 'a; sudo python t.py'", ""},
      {"env PYTHONPATH=src python t.py", "1 SF407 PYTHONPATH="},
      {"env -u PYTHONPATH python t.py", "1 SF407 PYTHONPATH"},
      {"env -u PYTHONPATH cmake --build b; PYTHONPATH= git pull; python t.py", ""},
      {"PYTHONPATH= conda run python t.py", "1 SF407 PYTHONPATH="},
      {"PYTHONPATH=/x eval 'python t.py'\nPYTHONPATH=/y . ./run.sh", "1 SF407 PYTHONPATH=; 2 SF407 PYTHONPATH="},
      {"srun --export=ALL,PYTHONPATH=src python t.py", "1 SF407 PYTHONPATH="},
      {"export SLURM_EXPORT_ENV=NONE\nsrun python t.py", "2 SF407 srun"},
      {"mpirun -np 2 -H a,b python t.py", "1 SF407 mpirun"},
      {"mpirun -np 2 python t.py", ""},
      {"uv run env -i python t.py", "1 SF407 env"},
      {"seq 2 | xargs -I{} ssh node{} python t.py", "1 SF402 ssh"},
      {"xargs sh -c 'python -I t.py'", "1 SF407 python -I"},
      {"flock /l -c 'env -i python t.py'", "1 SF407 env"},
      {"parallel -S n1 python t.py ::: 1", "1 SF402 parallel"},
      {"mytool --launcher ssh t.py", ""},
      {"RUN=\"env -i A=1\"\n$RUN python t.py", "1 SF407 env"},
      {"PY='python -I'; $PY t.py", "1 SF407 python -I"},
      {"$PYTHON -I t.py; ${MY_PYTHON} -u -E t.py", "1 SF407 $PYTHON -I; 1 SF407 ${MY_PYTHON} -E"},
      {"echo 'cd /job; python t.py' | ssh n1; cat run.sh | ssh -T n1", "1 SF402 ssh"},
      {"echo ls | ssh n1; echo $KEY | ssh n1 'cat >> k'; echo $P | sudo -S apt install python3", ""},
      {"cmd=(apptainer exec\n  --nv x.sif)\n\"${cmd[@]}\" python t.py", "1 SF404 apptainer"},
      {"cmd=(env); cmd+=(-i A=1)\n\"${cmd[@]}\" python t.py", "2 SF407 env"},
      {"case $S in a) R='apptainer exec x.sif';; b) R='';; esac\n$R python t.py", "1 SF404 apptainer"},
      {"if a; then R='apptainer exec x.sif'; else R=srun; fi; $R python t.py; R=x; $R python t.py",
       "1 SF404 apptainer"},
      {"case a in a) R='srun --export=A' ;; *) R=srun ;; esac; $R python t.py", "1 SF407 --export=A"},
      {"R='env -i'; R=env; $R python t.py; if a; then R=ssh; else R+=' x'; fi", "1 SF407 env"}, // perhaps
      {"ssh n1 pkill -f torchrun; trap 'ssh n1 rm -f t.py' EXIT; ssh n1 ls \\; python t.py", "1 SF402 ssh"},
      {"export PDSH_RCMD_TYPE=ssh MODE=docker; MSG='sudo is needed'; hosts=(ssh a)\npython t.py", ""},
      {"command -v sudo; which docker; time -p env -i python t.py", "1 SF407 env"},
      {"A='hello sudo'; B=(1 2 3); C=ssh-key; D=", ""},
      {"eval \"env -i python t.py\"", "1 SF407 env"},
      {"bash <<< 'env -i python t.py'", "1 SF407 env"},
      {"srun bash <<'EOT'\nit=1\nexport PYTHONPATH=src\nEOT\n", "3 SF407 PYTHONPATH="},
      {"cat <<EOT | tee x | bash -s -- one\nexport PYTHONPATH=src\nEOT\n", "2 SF407 PYTHONPATH="},
      {"cat <<EOT | sbatch -J x\n#!/bin/bash\n#SBATCH --export=NONE\npython t.py\nEOT\n", "3 SF407 --export=NONE"},
      {"sbatch -J x <<EOT\nenv -i python t.py\nEOT\n", "2 SF407 env"},
      {"echo 'python -I t.py' | sh", "1 SF407 python -I"},
      {"python t.py | sh; cat <<EOT\nsudo python t.py\nEOT\n", ""},
      {"${DOCKER:-docker} run img python t.py", "1 SF404 docker"},
      {"PY=\"${PY:-python -I}\"\n$PY t.py", "1 SF407 python -I"},
      {"${PRE:-} python t.py; ${A:-b} c", ""},
      {"launch() { local py=${PYTHON:-python -I}; $py \"$@\"; }", "1 SF407 python -I"},
      {"find . -name '*.sh' -exec ssh n1 bash {} +", "1 SF402 ssh"},
      {"W=./w.sh; cat > $W <<EOT\nunset PYTHONPATH\nexec \"$@\"\nEOT\nsrun $W python t.py", "2 SF407 unset PYTHONPATH"},
      {"function on {\nssh \"$1\" \"${@:2}\"\n}\non n1 python t.py", "2 SF402 ssh"},
      {"x=${A:-$(env -i python t.py)}; y=${A%%|*}; z=${A:-ssh; python a.py}", "1 SF407 env"},
      {"srun ${IMG:+--container-image=$IMG} python t.py", "1 SF404 --container-image=$IMG"},
      {"on() { local h=$1; shift; ssh \"$h\" \"$@\"; }\non n1 'cd a && python t.py'", "1 SF402 ssh"},
      {"on() { ssh \"$1\" \"$2\"; }; on n1 'mkdir a'; on n2 nvidia-smi; exec \"$@\"", "1 SF402 ssh"},
      {"for t in docker ssh sudo; do command -v $t; done; select x in ssh; do echo; done", ""},
      {"ssh n1 <<EOT\npython t.py\nEOT\n", "1 SF402 ssh"},
      {"cat > note <<EOT\nit's a note\nEOT\nsudo python t.py", "4 SF402 sudo"},
      {"cat > step.sh <<EOT\n\nsudo python t.py\nEOT\n", "3 SF402 sudo"},
      {"n=$((1 << 2)); env -i python t.py", "1 SF407 env"},
      {"torchrun --nproc_per_node 8 \\\n  t.py \\\n  --note \"use sudo python\"", ""},
      // Redirections: the number in front is no word, and what a descriptor has is read from it.
      {"bash <<< 'env -i python t.py' 2>&1 | tee log", "1 SF407 env"},
      {"echo 'env -i python t.py' > a.sh 2> errors; bash a.sh", "1 SF407 env"},
      {"echo 'env -i python t.py' >| a.sh; bash a.sh", "1 SF407 env"},
      {"echo 'env -i python t.py' &> a.sh; bash a.sh", "1 SF407 env"},
      {"{ echo 'env -i python t.py'; echo done >&2; } > a.sh; bash a.sh", "1 SF407 env"},
      {"exec 3< <(echo 'env -i python t.py'); bash <&3", "1 SF407 env"},
      {"echo 'env -i python t.py' > l; while read -r -u 4 c; do $c; done 4< l", "1 SF407 env"},
      {"bash /dev/fd/3 3<<'EOT'\nenv -i python t.py\nEOT\n", "2 SF407 env"},
      {"bash /dev/stdin <<'EOT'\nenv -i python t.py\nEOT\n", "2 SF407 env"},
      {"exec 3< hosts; read -u 3 h; python t.py <&3 >&2 2>/dev/null", ""},
      {"{ echo date; echo 'env -i python t.py'; } | bash", "1 SF407 env"},
      {"(echo date; echo 'env -i python t.py') | bash", "1 SF407 env"},
      {"make -Ca; cat > a/Makefile <<EOT\nall:\n\tPYTHONPATH=src python t.py\nEOT\nmake -Ca", "3 SF407 PYTHONPATH="},
      {"for i in 1 2; do\necho \"env -i python t.py $i\"\ndone | parallel -j 2", "2 SF407 env"},
      {"for i in 1 2; do echo 'env -i python t.py'; done > l; bash l", "1 SF407 env"},
      {": ${RUN:=srun --export=NONE}; $RUN python t.py", "1 SF407 --export=NONE"},
      {"srun $(which singularity) exec x.sif python t.py", "1 SF404 singularity"},
      {"$(which mpirun) -np 2 -H a,b python t.py", "1 SF407 mpirun"},
      {"PY=$(which python)\nssh n1 $PY -m a.b\nssh n1 $(which python) -m a.b", "2 SF402 ssh; 3 SF402 ssh"},
      {"S=$(command -v apptainer); \"$S\" exec x.sif python t.py", "1 SF404 apptainer"},
      {"P=`which python`; $P t.py; $(which python) -u t.py; W=$(which docker || true)", ""},
      {"echo 'sudo python t.py'; cp a.sh b.sh; mv b.sh c.sh; cp c.sh ./c.sh; bash c.sh", ""},
      {"echo 'sudo python t.py' > a; cp a b.sh; bash b.sh", "1 SF402 sudo"},
      {"sed s/a/b/ t.sh > a.sh; cat b.sh | grep x > c.sh; bash a.sh; bash c.sh", ""},
      {"tee a.sh > /dev/null <<EOT\nenv -i python t.py\nEOT\nbash a.sh", "2 SF407 env"},
      {"echo PYTHONPATH=/x > e; while read -r l; do export \"$l\"; done < e; python t.py", "1 SF407 PYTHONPATH="},
      {"ssh n1 'export A=1; env | sort'", ""},
      {"{ echo 'export PYTHONPATH=/x'; for i in 1; do echo python t.py; done; } | bash", "1 SF407 PYTHONPATH="},
      {"for i in 1 2; do echo 'env -i python t.py'; done | tee l; bash l", "1 SF407 env"},
      {"for i in 1 2; do echo 'env -i python t.py'; done; echo 'env -i python t.py' > a.log", ""},
      {"S=$(cat <<EOT\nenv -i python t.py\nEOT\n)\nbash -c \"$S --x\"", "2 SF407 env"},
      {"tee a.sh <<EOT\nenv -i python t.py\nEOT\necho 'python -I t.py' | sed s/x/y/ > b.sh",
       "2 SF407 env; 4 SF407 python -I"},
      {"LAUNCH='srun --export=NONE'; LAUNCH=\"$LAUNCH python\"; $LAUNCH t.py", "1 SF407 --export=NONE"},
      // Other programs that start some, and files that deepspeed hands on.
      {"expect -c 'spawn ssh n1 python t.py; interact'", "1 SF402 ssh"},
      {"expect -c 'spawn python t.py'; python u.py", ""},
      {"echo '0 1 * * * bash t.sh' | crontab -; crontab -l; crontab -r", "1 SF402 crontab"},
      {"ssh n1 'source train.sh'", "1 SF402 ssh"},
      {"ssh n1 '. /job/train.sh && date'", "1 SF402 ssh"},
      {"ssh n1 'source ~/conda/etc/profile.d/conda.sh; source env.sh; nvidia-smi'", ""},
      {"echo PYTHONPATH=/x >> .deepspeed_env; deepspeed -H hosts t.py", "1 SF407 PYTHONPATH="},
      {"echo PYTHONPATH=$PYTHONPATH >> .deepspeed_env; deepspeed -H hosts t.py", ""},
      // What runs nothing that builds datasets.
      {"sudo python -m pip install x; sudo -H -u bob python3 -m venv v; env -i python -m json.tool x", ""},
      {"ssh n1 python -m torch.utils.collect_env; ssh n1 'python3 -u -m http.server 80'; python -I -m compileall .",
       ""},
      {"ssh n1 'python -c \"import job; job.train()\"'; tmux new -d nvidia-smi", "1 SF402 ssh"},
      {"ssh n1 'python -c \"import job; job.go()\"'", "1 SF402 ssh"},
      {"ssh n1 'python -c \"from job import a; print(load_all(a))\"'", "1 SF402 ssh"},
      {"docker run img python t.py --name hostname", "1 SF404 docker"},
      {"PYTHONPATH = src\nall:\n\tpython t.py", "1 SF407 PYTHONPATH="},
      {"docker volume create v; docker network create n; docker run --rm img nvidia-smi; docker create img",
       "1 SF404 docker"},
      {"sudo -u bob python t.py", "1 SF402 sudo"},
      {"sudo -u bob ls; sudo A=1 apt-get update; su -c 'apt update'; su - bob -c 'python t.py'", "1 SF402 su"},
      {"ssh n1 python -m pkg.train", "1 SF402 ssh"},
      {"sudo conda run -n x python t.py; sudo conda install x", "1 SF402 sudo"},
      {"ssh n1 python t.py --version 2", "1 SF402 ssh"},
      {"ssh n1 python --version; ssh n1 'command -v python; find . -name \"*.py\"; vim t.py'; sudo make install", ""},
      {"ssh n1 vllm serve m", "1 SF402 ssh"},
      {"ssh n1 'ray start --address a:1'; ssh n1 ray stop; ssh ray hostname", "1 SF402 ssh"},
      {"ssh n1 'conda run -n x train'; ssh n1 'conda env list'; ssh n1 pip install vllm", "1 SF402 ssh"},
      {"C=\"cd $PWD; python t.py\"\nfor h in a b; do ssh $h \"$C --rank 1\" & done", "2 SF402 ssh"},
      {"clush -w n1 --copy t.py; clush -w n1 bash t.sh", "1 SF402 clush"},
      {"mpirun -np 2 -H a,b -x PYTHONPATH python t.py", ""},
      {"screen -S x -X quit; screen -X -S x kill; screen -d -r x", ""},
      {"screen -dmS x python t.py; screen -S x -X stuff 'python t.py'", "1 SF402 screen"},
      {"screen -dmS x python t.py; screen -S y bash r.sh; dtach -n s python t.py; gosu me python t.py", ""},
      {"su me -c 'python t.py'; runuser -u me -- python t.py; su -l me -c 'apt update'", ""},
      {"su -l me -c 'python t.py'", "1 SF402 su"},
      {"qsub -v HF_HOME,PYTHONPATH j.pbs; kubectl get pods; apptainer instance list", ""},
      {"qsub -v HF_HOME j.pbs; kubectl apply -f job.yaml", "1 SF402 qsub; 1 SF404 kubectl"},
      {"parallel -j2 docker run img python t.py {} ::: 1; kubectl replace -f j.yaml; helm upgrade t c",
       "1 SF404 parallel; 1 SF404 kubectl; 1 SF404 helm"},
      // Behind ssh also what no table knows.
      {"ssh n1 ./train", "1 SF402 ssh"},
      {"ssh -o A=b n1 /job/work --rank 1", "1 SF402 ssh"},
      {"ssh n1 'cd /job && make train'", "1 SF402 ssh"},
      {"ssh $h \"$CMD\"", "1 SF402 ssh"},
      {"ssh $h \"cd $D && $CMD --rank 1\"", "1 SF402 ssh"},
      {"ssh n1 \"$(declare -f train); train\"", "1 SF402 ssh"},
      {"ssh $h; ssh -i /k $h hostname -I; ssh $h ls /job; ssh $h \"mkdir -p $D\"; ssh $h 'echo $HOME'", ""},
      {"ssh -N -f -R $P:localhost:$P $LOGIN; D=/x; ssh $h \"test -d $D\"", ""},
      {"parallel --env PYTHONPATH -S n1 python t.py ::: 1; parallel --env _ -S n1 python t.py ::: 1", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(losses(row.text, row.text.starts_with("#") ? Started::submitted : Started::sourced) == row.losses);
  }
}

TEST_CASE("values of PYTHONPATH that count only if it was not set") {
  for (const std::string text :
       {"[ -z \"$PYTHONPATH\" ] && export PYTHONPATH=src; python t.py", "PYTHONPATH=${PYTHONPATH:-src} python t.py",
        "export PYTHONPATH=${PYTHONPATH-src}", ": ${PYTHONPATH:=src}; export PYTHONPATH",
        "[[ -n $PYTHONPATH ]] || export PYTHONPATH=src", "PYTHONPATH ?= src\nt:\n\tpython t.py",
        "export PYTHONPATH?=src\nt:\n\tpython t.py", "if [ -z \"$PYTHONPATH\" ]; then\nexport PYTHONPATH=src\nfi"}) {
    CAPTURE(text);
    CHECK(report_of(text).defaults.size() == 1);
  }
  for (const std::string text :
       {"export PYTHONPATH=src:${PYTHONPATH:-}", "export PYTHONPATH=src${PYTHONPATH:+:$PYTHONPATH}",
        "echo \"PYTHONPATH is ${PYTHONPATH:-not set}\"", "[ -z \"$PYTHONPATH\" ] && echo none",
        "if [ -z $PYTHONPATH ]; then\nexport PYTHONPATH=src\nelse\nexport PYTHONPATH=src:$PYTHONPATH\nfi",
        "export PYTHONPATH=${PYTHONPATH-}", "PYTHONPATH=src python t.py"}) {
    CAPTURE(text);
    CHECK(report_of(text).defaults.empty());
  }
}

TEST_CASE("what a text leaves of PYTHONPATH at its end") {
  const std::string text = "python t.py; unset PYTHONPATH; date";
  CHECK(losses(text, Started::run).empty());
  CHECK(losses("unset PYTHONPATH; date", Started::run).empty());
  CHECK(losses("unset PYTHONPATH; \"$@\"", Started::run) == "1 SF407 unset PYTHONPATH");
  CHECK(losses(text, Started::sourced) == "1 SF407 unset PYTHONPATH");
}

TEST_CASE("PYTHONPATH by another name, in a loop, and where it is empty or has its old value again") {
  struct Row {
    std::string text, losses;
  };
  const std::vector<Row> rows = {
      {"unset PYTHONHOME PYTHON_FLAGS $PYTHON_NAMES", ""},
      {"for v in PYTHONPATH A; do\nexport $v=/x\ndone", "1 SF407 for PYTHONPATH"},
      {"read -p \"is it $PYTHONPATH?\" answer", ""},
      {"for v in $(env | grep ^PYTHON | cut -d= -f1); do unset $v; done", "1 SF407 unset PYTHONPATH"},
      {"n=($(compgen -v PYTHON)); unset \"${n[@]}\"", "1 SF407 unset PYTHONPATH"},
      {"n=$(compgen -v PYTHON); unset $n", "1 SF407 unset PYTHONPATH"},
      {"while read v; do unset \"$v\"; done < <(compgen -v PYTHON)", "1 SF407 unset PYTHONPATH"},
      {"unset $(compgen -v PYTHON)", "1 SF407 unset PYTHONPATH"},
      {"for v in $(seq 3); do unset $v $(compgen -v CUDA); done", ""},
      {"while IFS= read -r v; do\nfor i in 1; do date; done\nunset $v\ndone < <(env | grep -o ^PYTHON[A-Z]*)\npython "
       "t.py",
       "3 SF407 unset PYTHONPATH"},
      {"while read v; do unset \"$v\"; done < <(compgen -v CUDA); while read w; do unset $w; done < names", ""},
      {"for v in $(env | grep ^SLURM_ | cut -d= -f1); do unset $v; done", ""},
      {"unset $(env | awk -F= '/^CONDA/{print $1}') $(env | sed -n 's/^OMPI_\\([^=]*\\).*/\\1/p')", ""},
      {"x=$(unset PYTHONPATH; date); y=`unset PYTHONPATH`; python t.py", "1 SF407 unset PYTHONPATH"},
      {"x=$(unset PYTHONPATH; python t.py); python u.py", "1 SF407 unset PYTHONPATH"},
      {"unset PYTHONPATH; trap 'python u.py' EXIT; python t.py", "1 SF407 unset PYTHONPATH"},
      {"typeset -xr PYTHONPATH=/x", "1 SF407 PYTHONPATH="},
      {"setenv PYTHONPATH src:$PYTHONPATH", ""},
      {"printf -v PYTHONPATH '%s:%s' src \"$PYTHONPATH\"", ""},
      {"export PYTHONPATH := src", "1 SF407 PYTHONPATH="},
      {"export PYTHONPATH := src:$(PYTHONPATH)", ""},
      {"PYTHONPATH=$MY_PYTHONPATH python t.py", "1 SF407 PYTHONPATH="},
      {"unset PYTHON{PATH,HOME}; python t.py", "1 SF407 unset PYTHONPATH"},
      {"unset {PYTHONPATH,A}; python t.py", "1 SF407 unset PYTHONPATH"},
      {"for v in PYTHON{PATH,HOME}; do unset $v; done", "1 SF407 for PYTHONPATH"},
      {"t: export PYTHONPATH := src\nt:\n\tpython t.py", "1 SF407 PYTHONPATH="},
      {"t: PYTHONPATH = src\nt:\n\tpython t.py", "1 SF407 PYTHONPATH="},
      {"unexport PYTHONPATH\nt:\n\tpython t.py", "1 SF407 unexport PYTHONPATH"},
      {"t:\n\t-PYTHONPATH=src python t.py", "2 SF407 PYTHONPATH="},
      {"PYTHONPATH ?= src\nt: prep\n\t@python t.py\nprep: ; mkdir a", ""},
      {"PYTHONPATH=src python setup.py install; PYTHONPATH=src sphinx-build a b", ""},
      {"NEW=$PWD:$PYTHONPATH; export PYTHONPATH=$NEW; env PYTHONPATH=a:$NEW python t.py", ""},
      {"OLD=$PYTHONPATH; unset PYTHONPATH; source setvars.sh; git pull; PYTHONPATH=$OLD", ""},
      {"OLD=$PYTHONPATH; unset PYTHONPATH; module load x; export PYTHONPATH=$OLD:$PYTHONPATH; python t.py", ""},
      {"OLD=$PYTHONPATH; unset PYTHONPATH; python t.py; PYTHONPATH=$OLD", "1 SF407 unset PYTHONPATH"},
      {"export PYTHONPATH=/x; export PYTHONPATH=$PYTHONPATH:/y", "1 SF407 PYTHONPATH="},
      {"[ -z \"$PYTHONPATH\" ] && export PYTHONPATH=src", ""},
      {"[ \"x$PYTHONPATH\" = x ] && export PYTHONPATH=src; [ ${#PYTHONPATH} -eq 0 ] && PYTHONPATH=a", ""},
      {"p=(a \"$PYTHONPATH\"); export PYTHONPATH=$(IFS=:; echo \"${p[*]}\")", ""},
      {"[ -z \"$PYTHONPATH\" ] && echo none\nexport PYTHONPATH=src", "2 SF407 PYTHONPATH="},
      {"echo $'it\\'s'; export PYTHONPATH=src", "1 SF407 PYTHONPATH="},
      {"echo 'a\\'; export PYTHONPATH=src", "1 SF407 PYTHONPATH="},
      {"function run { PYTHONPATH=src python t.py; }; run", "1 SF407 PYTHONPATH="},
      {"[[ $PYTHONPATH != */src* ]] && PYTHONPATH=src x", "1 SF407 PYTHONPATH="},
      {"test -n \"${PYTHONPATH:-}\" || export PYTHONPATH=src", ""},
      {"if [ -z $PYTHONPATH ]; then\necho none\nexport PYTHONPATH=src\nelse\nunset PYTHONPATH\nfi",
       "5 SF407 unset PYTHONPATH"},
      {"( unset PYTHONPATH; cmake -S . ); python t.py", "1 SF407 unset PYTHONPATH"},
      {"(A=(1 2); unset PYTHONPATH; git pull)\n(export PYTHONPATH=/x; ./train)", "2 SF407 PYTHONPATH="},
      {"(cd a; export PYTHONPATH=/x\npython t.py); python t.py", "1 SF407 PYTHONPATH="},
      {"f() { unset PYTHONPATH; }; case x in a) export PYTHONPATH=/x;; esac", "1 SF407 PYTHONPATH="},
      {"(export PYTHONPATH=/x; case $x in\na) python t.py;;\nesac)", "1 SF407 PYTHONPATH="},
      {"export PYTHONPATH=/x\n(python t.py)\npython t.py", "1 SF407 PYTHONPATH="},
      {"export SHAREFS_GUARD=0; python t.py", "1 SF407 SHAREFS_GUARD=0"},
      {"env SHAREFS_GUARD=0 python t.py", "1 SF407 SHAREFS_GUARD=0"},
      {"export RAY_ADDRESS=auto\npython t.py", "2 SF407 RAY_ADDRESS"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(losses(row.text) == row.losses);
  }
}

TEST_CASE("commands that come from stdin, from files, and from variables") {
  struct Row {
    std::string text, losses;
  };
  const std::vector<Row> rows = {
      {"source /dev/stdin <<EOT\nunset PYTHONPATH\nEOT\n", "2 SF407 unset PYTHONPATH"},
      {"declare -A c=(\n[a]=\"python t.py\"\n[b]=\"ssh n1 python t.py\"\n)\neval \"${c[$k]}\"", "3 SF402 ssh"},
      {"declare -A c=([a]='python -I a.py' [b]='python b.py')\n${c[$k]}", "1 SF407 python -I"},
      {"declare -A c\nc[a]='python t.py'\nc[b]='ssh n1 python t.py'\neval \"${c[$1]}\"", "3 SF402 ssh"},
      {"declare -A at=([a]=10.0.0.1 [b]='10.0.0.2'); ping ${at[$k]}; python t.py --at ${at[a]}", ""},
      {"if [ -n \"$PYTHONPATH\" ]; then\nexport PYTHONPATH=a:$PYTHONPATH\nelse\nexport PYTHONPATH=a\nfi\npython t.py",
       ""},
      {"if ( $?PYTHONPATH ) then\nsetenv PYTHONPATH a:$PYTHONPATH\nelse\nsetenv PYTHONPATH a\nendif\npython t.py", ""},
      {"if [ -n \"$PYTHONPATH\" ]; then ls; fi\nexport PYTHONPATH=a\npython t.py", "2 SF407 PYTHONPATH="},
      {"set -- python -I t.py; exec \"$@\"", "1 SF407 python -I"},
      {"FLAGS='-u -I'; python $FLAGS t.py", "1 SF407 python -I"},
      {"RUN=python; RUN+=' -I'; $RUN t.py", "1 SF407 python -I"},
      {"RUN='A=1 B=2 accelerate launch'\nsrun bash -c \"$RUN t.py\"", ""},
      {"RUN='PYTHONPATH=src python'\nsrun bash -c \"$RUN t.py\"", "1 SF407 PYTHONPATH="},
      {"while read -r c; do $c; done <<EOT\nenv -i python t.py\nEOT\n", "2 SF407 env"},
      {"cat > jobs <<EOT\nsudo python t.py\nEOT\nwhile read c; do $c; done < jobs", "2 SF402 sudo"},
      {"cat > jobs <<EOT\nsudo python t.py\nEOT\ncat jobs", "2 SF402 sudo"},
      {"printf 'a\\npython -I t.py\\n' > jobs; cat jobs | bash", "2 SF407 python -I"},
      {"printf '%s' 'python -I t.py' > j.sh; chmod +x j.sh; $D/j.sh", "1 SF407 python -I"},
      {"echo python -I t.py > j.sh\necho python t.py >> j.sh\nbash j.sh", "1 SF407 python -I"},
      {"{ echo a\nprintf 'unset PYTHONPATH\\n'; echo python t.py; } > $f; sbatch $f", "2 SF407 unset PYTHONPATH"},
      {"cat > c <<EOT\n0 python t.py\n1-3 python -I t.py\nEOT\nsrun -n4 --multi-prog c", "3 SF407 python -I"},
      {"cat > Makefile <<EOT\nt:\n\t@PYTHONPATH=src python t.py\nEOT\nmake t", "3 SF407 PYTHONPATH="},
      {"mail -s 'sudo python t.py' me; notify-send 'docker run done'; mytool 'docker run done'", ""},
      {"flock l -c 'docker run img python t.py'", "1 SF404 docker"},
      {"watch 'docker run --rm img'", "1 SF404 docker"},
      {"script -qc 'cd a && PYTHONPATH=src python t.py'", "1 SF407 PYTHONPATH="},
      {"parallel ::: 'python t.py' 'env -i python t.py'", "1 SF407 env"},
      {"make PYTHONPATH=src train", "1 SF407 PYTHONPATH="},
      {"make PYTHONPATH=src:$PYTHONPATH train; make train DIR=src", ""},
      {"#!/usr/bin/env -S python3 -I -u\nimport x", "1 SF407 python3 -I"},
      {"#!/usr/bin/env nix-shell\n#! nix-shell --pure -i bash -p python3\npython t.py", "2 SF402 nix-shell"},
      {"#!/bin/bash -l\npython t.py\n#!/usr/bin/python3 -I", ""},
      {"log 'srun --export=NONE python'; mytool 'docker exec ended'; docker compose ps", ""},
      {"source <(echo unset PYTHONPATH)", "1 SF407 unset PYTHONPATH"},
      {"\nbash <(printf 'cd a\\npython -I t.py') | tee log", "3 SF407 python -I"},
      {"\neval \"$(echo export PYTHONPATH=src | tr a b)\"", "2 SF407 PYTHONPATH="},
      {"\neval \"$(printf 'export PYTHONPATH=%s' src)\"; python t.py", "2 SF407 PYTHONPATH="},
      {"cat > a.env <<EOT\nPYTHONPATH=src\nEOT\nsource <(grep -v '^#' a.env | sed 's/^/export /')",
       "2 SF407 PYTHONPATH="},
      {"cat > jobs <<EOT\nsudo python t.py\nEOT\nwhile read c; do $c; done < <(cat jobs)", "2 SF402 sudo"},
      {"eval \"$(conda shell.bash hook)\"; eval $(ssh-agent); python t.py > >(tee log) 2>&1; eval $(; bash <(; <(#",
       ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(losses(row.text) == row.losses);
  }
  CHECK(report_of("while read c; do $c; done < jobs.txt; sbatch j.sbatch; ./run.sh python t.py; make -C a").scripts ==
        std::vector<NamedScript>{{"jobs.txt", Started::sourced},
                                 {"j.sbatch", Started::submitted},
                                 {"./run.sh", Started::run},
                                 {"a/Makefile"},
                                 {"a/GNUmakefile"},
                                 {"a/makefile"}});
  // Names with variables: with their values, or beside the script, whose name is not known here.
  CHECK(report_of("R=/r; S=${R}/s; bash $S/a.sh; H=$(cd \"$(dirname $0)\"; pwd); . \"$H/b.sh\"; cd d; bash c.sh")
            .scripts == std::vector<NamedScript>{{"/r/s/a.sh"}, {"b.sh", Started::sourced}, {"c.sh"}, {"d/c.sh"}});
  CHECK(report_of("pushd d; bash c.sh").scripts == std::vector<NamedScript>{{"c.sh"}, {"d/c.sh"}});
  // A copy, and what a program makes of a file.
  CHECK(report_of("cp a.sh b.sh; sed s/x/y/ c.sh > d; sbatch d; cp e.sh /backup").scripts ==
        std::vector<NamedScript>{{"a.sh", Started::submitted},
                                 {"b.sh", Started::submitted},
                                 {"c.sh", Started::submitted},
                                 {"d", Started::submitted}});
  CHECK(report_of("bash $(dirname $0)/a.sh; bash ${0%/*}/b.sh; bash $H/$N.sh; bash $H").scripts ==
        std::vector<NamedScript>{{"a.sh"}, {"b.sh"}});
  std::string named;
  for (const NamedScript& one :
       report_of("n=$(grep x hosts | wc -l); python t.py; bash <(cat a); eval \"$(cat b)\"; export $(cat c.env)")
           .scripts)
    named += one.name + " ";
  CHECK(named == "a b c.env ");
  CHECK(report_of("torchrun --no_python ./bind.sh python t.py; python u.py; ./v.py; torchrun w.py; xargs -n1 bash < x")
            .scripts == std::vector<NamedScript>{{"./bind.sh"}, {"./v.py"}, {"x"}});
  CHECK(report_of("make train; srun bash -s < b.sh").scripts ==
        std::vector<NamedScript>{{"Makefile"}, {"GNUmakefile"}, {"makefile"}, {"b.sh"}});
  CHECK(report_of("D=/a; if x; then D=/b; fi; bash $D/c.sh").scripts == std::vector<NamedScript>{{"/b/c.sh"}});
  CHECK(report_of("make -j 4 --directory a -f b.mk A=1 c d; make -C b -f c").scripts ==
        std::vector<NamedScript>{{"a/b.mk"}, {"b/c"}});
}

TEST_CASE("directives of a batch system count where the script is submitted") {
  for (const std::string line : {"#SBATCH --export=NONE", "#BSUB -env none"}) {
    CAPTURE(line);
    CHECK(losses(line + "\npython t.py", Started::run).empty());
    CHECK_FALSE(losses(line + "\npython t.py", Started::submitted).empty());
  }
  CHECK(report_of("sbatch --export=ALL a.sh; sbatch b.sh; bash c; ./d x; . e").scripts ==
        std::vector<NamedScript>{{"a.sh"}, {"b.sh", Started::submitted}, {"c"}, {"./d"}, {"e", Started::sourced}});
  CHECK(losses("#SBATCH -N 2\n#SBATCH --export=ALL,A=1\n#BSUB -env \"all, A=1\"\n#PBS -N x\npython t.py",
               Started::submitted)
            .empty());
}

TEST_CASE("what a script leaves of PYTHONPATH at its end counts where it is sourced, or sources another one") {
  for (const Started how : {Started::run, Started::submitted, Started::sourced})
    CHECK(losses("python t.py\nunset PYTHONPATH", how) == (how == Started::sourced ? "2 SF407 unset PYTHONPATH" : ""));
  CHECK(losses("export PYTHONPATH=/x; . ./e.sh", Started::run) == "1 SF407 PYTHONPATH=");
  CHECK(losses(". ./e.sh; python t.py; export PYTHONPATH=/x", Started::run).empty());
}

TEST_CASE("a report of a script: its programs, its caches, and the scripts that it names") {
  const ScriptReport report = report_of("#!/bin/bash\n"
                                        "source env.sh\n"
                                        "export HF_HOME=/share/hf TRITON_CACHE_DIR=$X/t\n"
                                        "conda run -n e torchrun --nproc_per_node=8 train.py --cache_dir /share/c\n"
                                        "bash eval.sh\n"
                                        "python -m pkg --dataset_cache_dir=/share/d > log\n");
  CHECK(names(report.programs) == "4 train.py (conda torchrun); 5 eval.sh (bash); 6 pkg (python)");
  CHECK(names(report.caches) ==
        "3 HF_HOME (/share/hf); 3 TRITON_CACHE_DIR ($X/t); 4 --cache_dir (/share/c); 6 --dataset_cache_dir (/share/d)");
  CHECK(report.scripts == std::vector<NamedScript>{{"env.sh", Started::sourced}, {"eval.sh"}});
  CHECK(report.losses.empty());
}

TEST_CASE("texts of any kind are read to their end") {
  for (const std::string text : {"ssh n '$(a b)' '${A:-b c}'", "", "'", "\"", "\\", "#", "$(", "((((", "a \\\n",
                                 "cat <<EOF\n'\nEOF\n", "\x01\xff;;&&||", "${=x:=a} b", "\\# c", ": ${:=}"})
    (void)report_of(text);
  CHECK(report_of(std::string(1U << 20U, 'x')).losses.empty());
  std::string nested;
  while (nested.size() < 1U << 18U)
    nested += "\"$(`";
  CHECK(report_of(nested).losses.empty());
  for (const std::string line : {"f( $A b\n", "( f() { f $@ $A; }\n", "A=\"$A $A\"\n", "A+=$A\n", "export $A ",
                                 "\"$@\" $A\n", "A=\"$A $A\"; echo $A >> j\n"}) {
    std::string many;
    while (many.size() < 1U << 11U)
      many += line;
    CHECK(report_of(many).losses.empty());
  }
}

TEST_CASE("golden job scripts: on which lines programs lose the guard") {
  int scripts = 0;
  for (const auto& part : test::read_golden(test::content_of(test::golden_files("scripts").front()))) {
    if (part.block.empty()) // a comment
      continue;
    ++scripts;
    CAPTURE(part.line);
    std::vector<std::string> lines;
    for (const Mention& one : report_of(part.text(), Started::submitted).losses)
      lines.push_back(std::to_string(one.line));
    CHECK((lines.empty() ? "silent" : join(lines, ", ")) == part.line.substr(0, part.line.find(':')));
  }
  CHECK(scripts >= 60);
}
