#include "cachefix/sanitize.hpp"
#include "given.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::cachefix;
using test::local_of;
using test::words;
using test::World;

TEST_CASE("requirement 10: deepspeed gets a file with the lines of the user's own .deepspeed_env files and ours") {
  World world;
  world.files["/home/alice/.deepspeed_env"] = "A=1\n";
  world.files["/job/.deepspeed_env"] = "B=2";
  const Sanitized result = world.run(words("deepspeed --hostfile h run_clm.py --cache_dir /share/x"));
  REQUIRE(result.copies.size() == 1);
  CHECK(result.copies[0].content.starts_with("A=1\nB=2\nHF_DATASETS_CACHE="));
  CHECK(result.set.at("DS_ENV_FILE") == result.copies[0].path);
  CHECK(result.copies[0].content.find("DS_ENV_FILE") == std::string::npos);
}

TEST_CASE("requirement 10: without a hostfile deepspeed reads its own, and then the variables need the file too") {
  World world;
  const std::string line = "deepspeed run_clm.py --cache_dir /share/x";
  CHECK(world.run(words(line)).copies.empty());
  world.files["/job/hostfile"] = "# nobody\n";
  CHECK(world.run(words(line)).copies.empty());
  world.files["/job/hostfile"] = "n1 slots=8\nn2 slots=8\n";
  const Sanitized result = world.run(words(line));
  CHECK(result.copies.size() == 1);
  CHECK(result.hosts == std::vector<std::string>{"n1", "n2"});
}

TEST_CASE("requirement 10: launches with other lines have other files") {
  World world;
  world.files["/job/h"] = "n1\nn2\n";
  const auto file_of = [&](const std::string& cache) {
    return world.run(words("deepspeed --hostfile h run_clm.py --cache_dir " + cache)).copies.at(0).path;
  };
  CHECK(file_of("/share/x") == file_of("/share/x"));
  CHECK(file_of("/share/x") != file_of("/share/y"));
}

TEST_CASE("requirement 10: each launcher carries the variables in its own way") {
  World world;
  world.environment = test::on_the_only_node(); // where srun starts processes here
  const std::string program = "python run_clm.py";
  const auto check = [&](const std::string& before, const std::string& after) {
    INFO(before);
    std::string wanted = after;
    for (const auto& [name, value] :
         {std::pair<std::string, std::string>{"{D}", local_of("/share/x")}, {"{H}", "/share/x"}})
      for (std::size_t at = wanted.find(name); at != std::string::npos; at = wanted.find(name))
        wanted.replace(at, name.size(), value);
    const Sanitized result = world.run(words(before + " " + program + " --cache_dir /share/x"));
    CHECK(result.argv == words(wanted + " " + program));
    CHECK(result.diagnoses.empty());
  };
  check("srun -N2", "srun -N2");
  check("srun --export=A", "srun --export=A,HF_DATASETS_CACHE={D},HF_HUB_CACHE={H},HUGGINGFACE_HUB_CACHE={H}");
  check("env -i A=1", "env -i A=1 HF_DATASETS_CACHE={D} HF_HUB_CACHE={H} HUGGINGFACE_HUB_CACHE={H}");
  check("mpirun.openmpi -np 2",
        "mpirun.openmpi -x HF_DATASETS_CACHE={D} -x HF_HUB_CACHE={H} -x HUGGINGFACE_HUB_CACHE={H} -np 2");
  check("mpiexec.hydra -genvnone -n 2", "mpiexec.hydra -genv HF_DATASETS_CACHE {D} -genv HF_HUB_CACHE {H} -genv "
                                        "HUGGINGFACE_HUB_CACHE {H} -genvnone -n 2");
  check("micromamba run --clean-env -n e",
        "micromamba run -e HF_DATASETS_CACHE={D} -e HF_HUB_CACHE={H} -e HUGGINGFACE_HUB_CACHE={H} --clean-env -n e");
}

TEST_CASE("requirement 10: into a container nothing is carried, because nothing in it is changed, and that is said") {
  World world;
  world.environment.emplace_back("HF_DATASETS_CACHE=/share/e"); // docker hands on what -e names
  const std::string line =
      GENERATE(as<std::string>(),
               "docker run --rm -v /share:/share -e HF_DATASETS_CACHE image python run_clm.py --cache_dir /share/x",
               "podman run -e HF_DATASETS_CACHE=/share/e image torchrun run_clm.py --cache_dir /share/x",
               "apptainer exec --nv -B /share image.sif python run_clm.py --cache_dir /share/x",
               "srun --container-image=image python run_clm.py --cache_dir /share/x");
  INFO(line);
  const Sanitized result = world.run(words(line));
  CHECK(result.argv == words(line));
  CHECK(result.set.empty());
  CHECK(result.scripts.empty());
  REQUIRE(result.diagnoses.size() == 1);
  CHECK(result.diagnoses[0].code == "SF404");
  CHECK(result.diagnoses[0].severity == Severity::warning);
}

TEST_CASE("requirement 10: where nothing carries them the flag is changed in place, and only if no model is lost") {
  World world;
  world.environment = test::on_the_only_node();
  const Sanitized in_place = world.run(words("srun --export=NONE python run_clm.py --cache_dir /share/x"));
  CHECK(in_place.set.empty());
  CHECK(in_place.argv.back() == local_of("/share/x"));
  // An unknown mpirun, models in the cache and a model of the hub: it would be downloaded again on every node.
  world.directories["/share/x"] = {"models--gpt2"};
  const std::string line = "mpirun -H n1,n2 python run_clm.py --cache_dir /share/x --model_name_or_path ";
  const Sanitized left = world.run(words(line + "gpt2"));
  CHECK(left.argv == words(line + "gpt2"));
  REQUIRE(left.diagnoses.size() == 1);
  CHECK(left.diagnoses[0].code == "SF408");
  world.directories["/share/model"] = {"config.json"};
  CHECK(world.run(words(line + "/share/model")).argv != words(line + "/share/model"));
}

TEST_CASE("requirement 15: what cannot reach the program is not set a second time") {
  World world;
  world.environment = test::on_the_only_node();
  world.mounts.emplace_back("/home", "nfs");
  const Argv argv = words("srun --export=NONE python t.py");
  const Sanitized once = world.run(argv);
  CHECK_FALSE(once.set.empty());
  for (const auto& [name, value] : once.set)
    world.environment.push_back(name + "=" + value);
  const Sanitized twice = world.run(argv);
  CHECK(twice.argv == argv);
  CHECK(twice.set.empty());
  CHECK(twice.changes().empty());
}
