// How the guard and other variables reach the program.
#include "cachefix/run_plan.hpp"
#include "given.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::cachefix;
using test::installed;
using test::words;
using test::World;

namespace {

const std::string k_guard = "PYTHONPATH=/usr/share/sharefs/guard/";

} // namespace

TEST_CASE("requirement 10: deepspeed hands PYTHONPATH on by itself, and nothing else") {
  World world;
  world.environment.emplace_back("HF_DATASETS_CACHE=/share/d");
  const Argv argv = words("deepspeed --hostfile h t.py");
  CHECK(world.run(argv, installed()).argv == argv);
  CHECK(world.run(argv, installed()).diagnoses.empty());
  Rules off = installed();
  off.guard = std::nullopt;
  CHECK(test::codes(world.run(argv, off)) == "SF407");
  CHECK(test::codes(world.run(words("deepspeed t.py"), off)).empty());
  world.files["/job/hostfile"] = "n1 slots=8\nn2 slots=8\n"; // its own default
  CHECK(test::codes(world.run(words("deepspeed t.py"), off)) == "SF407");
  for (int node = 0; node < 6000; ++node)
    world.files["/job/hostfile"] += "gpu-rack" + std::to_string(node) + ".cluster slots=8\n";
  CHECK(test::codes(world.run(words("deepspeed t.py"), off)) == "SF407");
  CHECK(world.run(argv, installed()).diagnoses.empty());
  world.files["/job/.deepspeed_env"] = "PYTHONPATH=/x\n";
  CHECK(test::codes(world.run(argv, installed())) == "SF407");
}

TEST_CASE("requirement 10: where a launcher does not hand the variables on they stand in front of its command") {
  World world;
  const auto check = [&](const std::string& before, const Argv& after) {
    INFO(before);
    const RunPlan result = world.run(words(before + " python t.py"), installed());
    CHECK(result.argv == after);
    CHECK(result.diagnoses.empty());
  };
  const auto in_front = [&](const std::string& before) {
    check(before, words(before + " /usr/bin/env" + std::string(" ") + k_guard + " python t.py"));
  };
  const auto handed_on = [&](const std::string& before) { check(before, words(before + " python t.py")); };
  handed_on("srun -N2");
  in_front("srun --export=A");
  in_front("srun --export NONE");
  in_front("srun --export=NIL");
  check("env -i A=1", words("env -i A=1" + std::string(" ") + k_guard + " python t.py"));
  check("env -u B", words("env -u B" + std::string(" ") + k_guard + " python t.py"));
  check("flux run --env=PYTHONPATH=/x -n 2",
        words("flux run --env=PYTHONPATH=/usr/share/sharefs/guard:/x -n 2 python t.py")); // its own value stays, too
  handed_on("flux run --env=A=1 -n 2");
  in_front("flux run --env=-PYTHON* -n 2");
  in_front("mpirun -np 2");
  in_front("mpirun -H n1,n2");
  in_front("mpirun -x PYTHONPATH --hostfile h");
  in_front("mpiexec.hydra -genvnone -n 2");
  in_front("mpiexec.hydra -genvlist PATH,HOME -n 2");
  in_front("micromamba run --clean-env -n e");
  handed_on("mpiexec.hydra -f hosts -n 2");
  handed_on("mpirun -ppn 2 -f hosts -n 2");
  handed_on("mpiexec -genv A 1 -hosts a,b -n 2");
  handed_on("conda run -n e");
}

TEST_CASE("requirement 10: what the user's own list hands on keeps its value, behind the guard's directory") {
  World world;
  world.environment.emplace_back("PYTHONPATH=/own");
  const RunPlan named = world.run(words("srun --export=PATH,PYTHONPATH python t.py"), installed());
  CHECK(named.set.at("PYTHONPATH") == "/usr/share/sharefs/guard:/own");
  CHECK(named.argv.at(1) == "--export=PATH,PYTHONPATH");
  const RunPlan genv = world.run(words("mpiexec.hydra -genvlist PYTHONPATH -n 2 python t.py"), installed());
  CHECK(genv.set == named.set);
  CHECK(genv.argv == words("mpiexec.hydra -genvlist PYTHONPATH -n 2 python t.py"));
}

TEST_CASE("requirement 10: SLURM_EXPORT_ENV cuts the environment as --export does") {
  World world;
  world.environment = test::on_the_only_node();
  world.environment.emplace_back("SLURM_EXPORT_ENV=NONE");
  const RunPlan once = world.run(words("srun python t.py"), installed());
  CHECK(once.argv == words("srun /usr/bin/env " + k_guard + " python t.py"));
  CHECK(world.run(once.argv, installed()).argv == once.argv);
}

TEST_CASE("words stand in front of no command that the launcher itself looks for or copies") {
  World world;
  const auto said = [&](const std::string& line) {
    const RunPlan result = world.run(words(line), installed());
    CHECK(result.argv == words(line));
    return test::codes(result);
  };
  CHECK(said("mpirun -H a,b train.run") == "SF407"); // Open MPI finds it in the working directory
  CHECK(said("mpirun -np 2 train.run").empty());     // here the ranks have the environment
  CHECK(said("mpirun -H a,b -s ./train.run") == "SF407");
  CHECK(said("mpirun -H a,b -path /x python t.py") == "SF407");
  CHECK(said("srun -N 2 train.run").empty());
  world.files["/usr/bin/train.run"] = "#!/usr/bin/python3";
  CHECK(world.run(words("mpirun -H a,b train.run"), installed()).argv.at(3) == "/usr/bin/env");
}

TEST_CASE("behind a program without a row no launcher gets words, and what it loses is said") {
  World world;
  const auto said = [&](const std::string& line) {
    const RunPlan result = world.run(words(line), installed());
    CHECK(result.argv == words(line));
    CHECK(result.set.contains("PYTHONPATH"));
    return test::codes(result);
  };
  CHECK(said("uv run mpirun.openmpi -np 2 python t.py").empty()); // local ranks have the environment
  CHECK(said("uv run mpirun.openmpi -np 2 -H a,b python t.py") == "SF407");
  CHECK(said("uv run env -i python t.py") == "SF407");
  CHECK(said("xargs -n 1 srun --export=A python t.py") == "SF407");
  CHECK(said("uv run python -I t.py") == "SF407");
  CHECK(said("xargs -I{} ssh node{} python t.py") == "SF402");
  CHECK(said("mytool --launcher ssh t.py").empty());
  CHECK(said("mytool env prod t.py").empty());
  const Argv given = words("uv run env PYTHONPATH=/x python t.py");
  CHECK(world.run(given, installed()).argv == words("uv run env PYTHONPATH=/usr/share/sharefs/guard:/x python t.py"));
  CHECK(world.run(given, installed()).diagnoses.empty());
  world.files["/usr/bin/uv"] = "\x7f"
                               "ELF";
  const RunPlan both = world.run(words("mpirun -x A -np 1 uv run python a.py : -np 1 python b.py"), installed());
  CHECK(std::ranges::count(both.argv, "PYTHONPATH=/usr/share/sharefs/guard/") == 2);
}

TEST_CASE("requirement 10: where nothing carries them that is said") {
  World world;
  const Argv job = words("sbatch --export=NONE job.sh"); // which gets the environment of a login
  CHECK(world.run(job, installed()).argv == job);
  CHECK(test::codes(world.run(job, installed())) == "SF407");
  CHECK(world.run(words("sbatch --export=A job.sh"), installed()).argv ==
        words("sbatch --export=A," + k_guard + " job.sh"));
  world.environment.emplace_back("SBATCH_EXPORT=A");
  CHECK(test::codes(world.run(words("sbatch job.sh"), installed())) == "SF407");
  CHECK(test::codes(world.run(words("srun --export=A train.run"), installed())) == "SF407"); // found by srun itself
}

TEST_CASE("requirement 15: what cannot reach the program is not set a second time") {
  World world;
  world.environment = test::on_the_only_node();
  world.mounts.emplace_back("/home", "nfs");
  const Argv argv = words("sbatch --export=NONE job.sh");
  const RunPlan once = world.run(argv, installed());
  CHECK_FALSE(once.set.empty());
  for (const auto& [name, value] : once.set)
    world.environment.push_back(name + "=" + value);
  const RunPlan twice = world.run(argv, installed());
  CHECK(twice.argv == argv);
  CHECK(twice.set.empty());
}
