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

const std::vector<std::pair<std::string, std::string>> k_guard = {{"PYTHONPATH", "/usr/share/sharefs/guard"},
                                                                  {"SHAREFS_BIN", "/usr/bin/sharefs"},
                                                                  {"SHAREFS_GUARD", "1"},
                                                                  {"SHAREFS_GUARD_BUILD", "publish"},
                                                                  {"SHAREFS_GUARD_WHEN", "shared"}};

/// `before`, all five by `each` with {N} and {V}, `after`.
Argv with_guard(const std::string& before, const std::string& each, const std::string& after) {
  std::string line = before;
  for (const auto& [name, value] : k_guard) {
    std::string one = each;
    one.replace(one.find("{N}"), 3, name);
    one.replace(one.find("{V}"), 3, value);
    line += one;
  }
  return words(line + after);
}

} // namespace

TEST_CASE("requirement 10: deepspeed gets a file with the lines of the user's own .deepspeed_env files and ours") {
  World world;
  world.files["/home/alice/.deepspeed_env"] = "A=1\n";
  world.files["/job/.deepspeed_env"] = "B=2";
  const RunPlan result = world.run(words("deepspeed --hostfile h t.py"), installed());
  REQUIRE(result.files.size() == 1);
  CHECK(result.files[0].content.starts_with("A=1\nB=2\nPYTHONPATH=/usr/share/sharefs/guard\n"));
  CHECK(result.set.at("DS_ENV_FILE") == result.files[0].path);
  CHECK(result.files[0].content.find("DS_ENV_FILE") == std::string::npos);
  World other = world; // a job that is just being started never finds the lines of another
  other.environment.emplace_back("PYTHONPATH=/x");
  CHECK(other.run(words("deepspeed --hostfile h t.py"), installed()).files.at(0).path != result.files[0].path);
}

TEST_CASE("requirement 10: without a hostfile deepspeed reads its own, and then the variables need the file too") {
  World world;
  CHECK(world.run(words("deepspeed t.py"), installed()).files.empty());
  world.files["/job/hostfile"] = "n1 slots=8\nn2 slots=8\n";
  CHECK(world.run(words("deepspeed t.py"), installed()).files.size() == 1);
}

TEST_CASE("requirement 10: each launcher carries the variables in its own way") {
  World world;
  const auto check = [&](const std::string& before, const Argv& after) {
    INFO(before);
    const RunPlan result = world.run(words(before + " python t.py"), installed());
    CHECK(result.argv == after);
    CHECK(result.diagnoses.empty());
  };
  check("srun -N2", words("srun -N2 python t.py"));
  check("srun --export=A", with_guard("srun --export=A", ",{N}={V}", " python t.py"));
  check("env -i A=1", with_guard("env -i A=1", " {N}={V}", " python t.py"));
  check("env -u B", with_guard("env -u B", " {N}={V}", " python t.py"));
  check("mpirun.openmpi -np 2", with_guard("mpirun.openmpi", " -x {N}={V}", " -np 2 python t.py"));
  check("mpiexec.hydra -n 2", words("mpiexec.hydra -n 2 python t.py"));
  check("mpiexec.hydra -genvnone -n 2", with_guard("mpiexec.hydra", " -genv {N} {V}", " -genvnone -n 2 python t.py"));
  check("micromamba run --clean-env -n e",
        with_guard("micromamba run", " -e {N}={V}", " --clean-env -n e python t.py"));
  check("conda run -n e", words("conda run -n e python t.py"));
  const Argv named = world.run(words("mpirun -x PYTHONPATH -np 2 python t.py"), installed()).argv;
  CHECK(std::ranges::count(named, "PYTHONPATH=/usr/share/sharefs/guard") == 0); // handed on by its name
  CHECK(std::ranges::count(named, "SHAREFS_GUARD=1") == 1);
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
  const RunPlan both = world.run(words("mpirun -x A -np 1 uv run python a.py : -np 1 python b.py"), installed());
  CHECK(std::ranges::count(both.argv, "SHAREFS_GUARD=1") == 2);
}

TEST_CASE("requirement 10: where nothing carries them that is said") {
  World world;
  const Argv step = words("srun --export=NONE python t.py"); // on a node that is not known sharefs sets it there
  CHECK(world.run(step, installed()).argv == words("srun --export=NONE sharefs run --node -- python t.py"));
  CHECK(world.run(step, installed()).diagnoses.empty());
  world.environment = test::on_the_only_node();
  const RunPlan none = world.run(words("srun --export=NONE python t.py"), installed());
  CHECK(none.argv == words("srun --export=NONE python t.py"));
  CHECK(test::codes(none) == "SF407");
  CHECK(test::codes(world.run(words("mpirun -H n1,n2 python t.py"), installed())) == "SF407"); // of nobody knows whom
}

TEST_CASE("requirement 15: what cannot reach the program is not set a second time") {
  World world;
  world.environment = test::on_the_only_node();
  world.mounts.emplace_back("/home", "nfs");
  const Argv argv = words("srun --export=NONE python t.py");
  const RunPlan once = world.run(argv, installed());
  CHECK_FALSE(once.set.empty());
  for (const auto& [name, value] : once.set)
    world.environment.push_back(name + "=" + value);
  const RunPlan twice = world.run(argv, installed());
  CHECK(twice.argv == argv);
  CHECK(twice.set.empty());
}
