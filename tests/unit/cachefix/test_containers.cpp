// What starts in a container is left byte for byte, with all that reaches it, by whichever way it is started.
#include "given.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::cachefix;
using test::words;
using test::World;

namespace {

bool is_left(const RunPlan& result, const Argv& argv) {
  return result.argv == argv && result.set.empty() && result.directories.empty() && test::codes(result) == "SF404";
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
      const Argv argv = words(launcher + option + " python t.py --cache_dir /share/c");
      CAPTURE(launcher, option);
      CHECK(is_left(world.run(argv, test::installed()), argv));
    }
  }
  const Argv argv = words("sbatch --container-name dev job.sh --cache_dir /share/c");
  CHECK(is_left(world.run(argv, test::installed()), argv));
  const Argv wrapped{"sbatch", "--container-image=x", "--wrap", "python t.py --cache_dir /share/c"};
  CHECK(is_left(world.run(wrapped, test::installed()), wrapped));
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
    const Argv argv = words("srun python t.py --cache_dir /share/c");
    CHECK(is_left(world.run(argv, test::installed()), argv));
    World bare;
    bare.environment = test::on_the_only_node();
    const Argv own = words("env " + variable + " srun python t.py --cache_dir /share/c");
    CHECK(is_left(bare.run(own, test::installed()), own));
    CHECK_FALSE(world.run(words("python t.py"), test::installed()).set.empty()); // not by srun
  }
  World empty;
  empty.environment = test::on_the_only_node();
  empty.environment.emplace_back("SRUN_CONTAINER=");
  const Argv argv = words("srun python t.py --cache_dir /share/c");
  CHECK_FALSE(empty.run(argv, test::installed()).set.empty());
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
      const Argv argv = words(launcher + runtime + " python t.py --cache_dir /share/c");
      CAPTURE(launcher, runtime);
      CHECK(is_left(world.run(argv, test::installed()), argv));
    }
  for (const std::string tool :
       {"docker ps", "docker pull image", "apptainer pull img.sif docker://x", "enroot list"}) {
    CAPTURE(tool);
    CHECK(test::codes(world.run(words(tool))).empty());
  }
}
