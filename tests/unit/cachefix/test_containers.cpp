// What starts in a container is left byte for byte, with all that reaches it, by whichever way it is started.
#include "given.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::cachefix;
using test::words;
using test::World;

namespace {

Rules rules_as_installed() {
  Rules rules;
  rules.node = {"/usr/bin/sharefs", "run", "--node", "--"};
  return rules;
}

bool is_left(const Sanitized& result, const Argv& argv) {
  return result.argv == argv && result.set.empty() && result.directories.empty() && result.copies.empty() &&
         test::codes(result) == "SF404";
}

} // namespace

TEST_CASE("container: every option of pyxis and of Slurm") {
  World world;
  world.environment = test::on_the_only_node();
  for (const std::string option : {"--container-image=x",
                                   "--container-image x",
                                   "--container-mounts=/a:/b",
                                   "--container-mounts /a:/b",
                                   "--container-workdir=/w",
                                   "--container-name=dev",
                                   "--container-name dev",
                                   "--container-save=/share/x.sqsh",
                                   "--container-mount-home",
                                   "--no-container-mount-home",
                                   "--container-remap-root",
                                   "--no-container-remap-root",
                                   "--container-entrypoint",
                                   "--no-container-entrypoint",
                                   "--container-entrypoint-log",
                                   "--container-writable",
                                   "--container-readonly",
                                   "--container-env=A,B",
                                   "--container-env A",
                                   "--container=/share/bundle",
                                   "--container-id=x",
                                   "--container-of-tomorrow",
                                   "--environment=edf",
                                   "-N2 --made-up --container-name=dev",
                                   "--container-image=x --made-up"}) {
    for (const std::string launcher : {"srun ", "env A=1 srun -n 2 ", "timeout 9 srun "}) {
      const Argv argv = words(launcher + option + " python run_clm.py --cache_dir /share/c");
      CAPTURE(launcher, option);
      CHECK(is_left(world.run(argv, rules_as_installed()), argv));
    }
  }
  const Argv argv = words("sbatch --container-name dev job.sh --cache_dir /share/c");
  CHECK(is_left(world.run(argv, rules_as_installed()), argv));
  const Argv wrapped{"sbatch", "--container-image=x", "--wrap", "python run_clm.py --cache_dir /share/c"};
  CHECK(is_left(world.run(wrapped, rules_as_installed()), wrapped));
}

TEST_CASE("container: by variables") {
  for (const std::string variable : {"SRUN_CONTAINER=/share/b", "SRUN_CONTAINER_ID=x", "SLURM_CONTAINER=/share/b",
                                     "SLURM_CONTAINER_ID=x", "PYXIS_CONTAINER_IMAGE=x", "PYXIS_CONTAINER_NAME=dev",
                                     "SLURM_SPANK__SLURM_SPANK_OPTION_pyxis_container_image=x"}) {
    CAPTURE(variable);
    World world;
    world.environment = test::on_the_only_node();
    world.environment.push_back(variable);
    world.environment.emplace_back("HF_DATASETS_CACHE=/share/d");
    const Argv argv = words("srun python run_clm.py --cache_dir /share/c");
    CHECK(is_left(world.run(argv, rules_as_installed()), argv));
    World bare;
    bare.environment = test::on_the_only_node();
    const Argv own = words("env " + variable + " srun python run_clm.py --cache_dir /share/c");
    CHECK(is_left(bare.run(own, rules_as_installed()), own));
    const Argv text{"bash", "-c", "export " + variable + "\nexport HF_DATASETS_CACHE=/share/d\nsrun python run_clm.py"};
    CHECK(is_left(bare.run(text, rules_as_installed()), text));
    const Argv without = words("python run_clm.py --cache_dir /share/c"); // not by srun
    CHECK(world.run(without).argv != without);
  }
  World empty;
  empty.environment = test::on_the_only_node();
  empty.environment.emplace_back("SRUN_CONTAINER=");
  const Argv argv = words("srun python run_clm.py --cache_dir /share/c");
  CHECK(empty.run(argv).argv != argv);
}

TEST_CASE("container: every runtime, behind whichever launcher") {
  World world;
  world.environment.emplace_back("HF_DATASETS_CACHE=/share/d");
  for (const std::string runtime : {"docker run --rm -v /share:/share image",
                                    "docker --context x run image",
                                    "docker exec box",
                                    "docker compose run train",
                                    "docker-compose run train",
                                    "podman run image",
                                    "podman --remote exec box",
                                    "podman-hpc run image",
                                    "nerdctl run image",
                                    "nvidia-docker run image",
                                    "apptainer exec img.sif",
                                    "apptainer --quiet exec img.sif",
                                    "singularity exec --bogus img",
                                    "singularity run img",
                                    "singularity shell img",
                                    "enroot start box",
                                    "ch-run img --",
                                    "shifter --image=x",
                                    "sarus run x",
                                    "udocker run x",
                                    "bwrap --bind / /",
                                    "kubectl exec pod --",
                                    "systemd-nspawn -D /img",
                                    "chroot /img",
                                    "/opt/bin/img.sif",
                                    "distrobox enter x --",
                                    "crictl exec x"})
    for (const std::string launcher :
         {"", "env A=1 ", "mpirun -np 2 ", "mpirun --made-up ", "srun ", "srun --made-up=1 ", "torchrun --no-python ",
          "nohup ", "sudo ", "sudo -E ", "numactl -N 0 ", "jsrun -n 1 ", "flux run -n 2 ", "aprun -n 2 ", "xargs ",
          "./wrapper ", "./wrapper.sh ", "bash ./wrapper.sh ", "python launch.py -- "}) {
      const Argv argv = words(launcher + runtime + " python run_clm.py --cache_dir /share/c");
      CAPTURE(launcher, runtime);
      CHECK(is_left(world.run(argv, rules_as_installed()), argv));
    }
  for (const std::string tool :
       {"docker ps", "docker pull image", "apptainer pull img.sif docker://x", "enroot list"}) {
    CAPTURE(tool);
    CHECK(test::codes(world.run(words(tool))).empty());
  }
  const Argv remote{"ssh", "n1", "docker run image python run_clm.py --cache_dir /share/c"};
  CHECK(is_left(world.run(remote), remote));
  const Argv mixed = words("mpirun -np 1 python run_clm.py --cache_dir /share/c : -np 1 bash inner.sh");
  world.files["/job/inner.sh"] = "apptainer exec img.sif python x.py\n";
  CHECK(is_left(world.run(mixed), mixed));
}

TEST_CASE("container: what a text assigns for it stays, and the others get their own") {
  World world;
  const std::string container =
      GENERATE(as<std::string>(), "apptainer exec img.sif python train.py", "srun --container-image=x python train.py",
               "RUN='singularity exec img.sif'\n$RUN python train.py",
               "ARGS=(--container-name=dev)\nsrun \"${ARGS[@]}\" python train.py",
               "ARGS=\"--container-image=x --container-mounts=/a\"\nsrun $ARGS python train.py",
               "docker \\\n  run -e HF_DATASETS_CACHE image python train.py", "bash inner.sh",
               "source env.sh\n$RUN python train.py", "f() { podman run image python train.py; }\nf",
               "eval 'apptainer exec img.sif python train.py'",
               "if true; then ssh n1 \"docker run image python t.py\"; fi", "sbatch job.sh");
  CAPTURE(container);
  world.files["/job/inner.sh"] = "apptainer exec img.sif python x.py\n";
  world.files["/job/env.sh"] = "RUN=\"apptainer exec img.sif\"\n";
  world.files["/job/job.sh"] = "#!/bin/bash\n#SBATCH -N 2\n#SBATCH --container-image=x\npython train.py\n";
  const std::string alone = "export HF_DATASETS_CACHE=/share/d\nexport TRITON_CACHE_DIR=/share/t\n" + container + "\n";
  const ScriptResult script = world.script("x.sh", alone);
  CHECK(script.text == alone);
  CHECK(script.sanitized.set.empty());
  CHECK(script.sanitized.changes().empty());
  CHECK(test::codes(script.sanitized).find("SF404") != std::string::npos);
  const Sanitized text = world.run({"bash", "-c", alone});
  CHECK(text.argv == Argv{"bash", "-c", alone});
  CHECK(text.set.empty());
  const Argv around{"env", "HF_DATASETS_CACHE=/share/e", "bash", "-c", container};
  CHECK(world.run(around).argv == around);
  CHECK(world.run(around).set.empty());
  world.files["/job/outer.sh"] = container + "\n";
  world.environment.emplace_back("HF_DATASETS_CACHE=/share/e");
  const Argv file = words("bash outer.sh --cache_dir /share/c");
  CHECK(world.run(file).argv == file);
  CHECK(world.run(file).set.empty());
  const ScriptResult both = world.script("x.sh", alone + "python prepare.py\n");
  CHECK(both.text == alone + "HF_DATASETS_CACHE=" + test::local_of("/share/d") +
                         " TRITON_CACHE_DIR=" + test::local_of("/share/t") + " python prepare.py\n");
}

TEST_CASE("container: a batch script whose directives say so is left as a whole") {
  const World world;
  for (const std::string directive : {"--container-image=x", "--container-name x", "--container=/share/b",
                                      "-N 2 --container-image x", "--environment=x"}) {
    CAPTURE(directive);
    const std::string text = "#!/bin/bash\n#SBATCH -J a\n#SBATCH " + directive +
                             "\nexport HF_DATASETS_CACHE=/share/d\npython run_clm.py --cache_dir /share/c\n";
    const ScriptResult script = world.script("x.sh", text);
    CHECK(script.text == text);
    CHECK(script.sanitized.set.empty());
    CHECK(test::codes(script.sanitized) == "SF404");
  }
  const std::string text =
      "#!/bin/bash\n#SBATCH --job-name=--container\n# --container-image=x\npython run_clm.py --cache_dir /share/c\n";
  CHECK(world.script("x.sh", text).text != text);
}
