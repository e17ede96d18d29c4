// Compiled caches are mapped: a local disk that is mounted noexec is no place for them.
#include "given.hpp"
#include "support/catch.hpp"

#include <iterator>

using namespace sharefs;
using namespace sharefs::cachefix;
using test::words;
using test::World;

namespace {

constexpr const char* k_code[] = {
    "TRITON_CACHE_DIR",        "TRITON_HOME",        "TORCH_EXTENSIONS_DIR", "VLLM_CACHE_ROOT",
    "TORCHINDUCTOR_CACHE_DIR", "SGLANG_CACHE_DIR",   "SGLANG_DG_CACHE_DIR",  "FLASHINFER_WORKSPACE_BASE",
    "DG_JIT_CACHE_DIR",        "TILELANG_CACHE_DIR", "NUMBA_CACHE_DIR",      "CUDA_CACHE_PATH"};

} // namespace

TEST_CASE("noexec: code goes to another place, data stay where they are best") {
  World world;
  world.environment.emplace_back("HF_MODULES_CACHE=/share/d");
  for (const char* name : k_code)
    world.environment.push_back(std::string(name) + "=/share/code");
  CHECK(test::codes(world.run(words("python t.py"))).empty());
  world.local.noexec = "/var/cache/sharefs/alice lies on /var, which is mounted noexec";
  world.local.for_code = "/var/tmp/sharefs-alice";
  const RunPlan result = world.run(words("python t.py"));
  CHECK(result.set.at("HF_MODULES_CACHE") == test::local_of("/share/d"));
  for (const char* name : k_code) {
    CAPTURE(name);
    CHECK(result.set.at(name) == "/var/tmp/sharefs-alice/" + cache_key("/share/code"));
  }
  CHECK(test::codes(result) == "SF414");
}

TEST_CASE("noexec: where there is no other place code stays on the share, which is said once, and the command starts") {
  World world;
  world.environment.emplace_back("HF_MODULES_CACHE=/share/d");
  for (const char* name : k_code)
    world.environment.push_back(std::string(name) + "=/share/code");
  CHECK(world.run(words("python t.py")).set.size() == std::size(k_code) + 1);
  world.local.noexec = "/var/cache/sharefs/alice lies on /var, which is mounted noexec";
  const RunPlan result = world.run(words("python t.py"));
  CHECK(result.set.size() == 1);
  CHECK(result.set.at("HF_MODULES_CACHE") == test::local_of("/share/d"));
  REQUIRE(result.diagnoses.size() == 1);
  CHECK(result.diagnoses[0].code == "SF405");
  CHECK(result.diagnoses[0].severity == Severity::warning);
  CHECK(result.diagnoses[0].message == "no directory on this host's own disks can hold compiled caches: "
                                       "/var/cache/sharefs/alice lies on /var, which is mounted noexec; they were left "
                                       "where they are");
  const RunPlan only = world.run(words("env -u HF_MODULES_CACHE python t.py"));
  CHECK(only.set.empty());
  CHECK(only.directories.empty());
}
