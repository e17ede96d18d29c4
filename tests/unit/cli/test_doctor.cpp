// A part of doctor that fails, or comes too late, keeps no other from being heard. What each finds: tests/golden.
#include "cli/commands/doctor/parts.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>
#include <new>
#include <sstream>

using namespace sharefs;
using namespace sharefs::cli;

namespace {

struct Doctor {
  test::TemporaryDirectory root;
  test::ScriptedSystem system{root.path()};

  std::vector<Part> examine(const Examination& how) {
    std::istringstream in;
    std::ostringstream out;
    Host host{nullptr, in, out, out, {}, {}, "/"};
    ui::Console console(in, out, out, {});
    Context context(host, system, console, {}, {"sharefs", "doctor"});
    return cli::examine(context, how);
  }
};

Diagnoses of(const std::vector<Part>& parts, const std::string& name) {
  const auto part = std::ranges::find(parts, name, &Part::name);
  return part == parts.end() ? Diagnoses{{Severity::error, "no such part", name, "", "", ""}} : part->found;
}

} // namespace

TEST_CASE("a part of doctor that throws is its own diagnosis") {
  Doctor doctor;
  doctor.system.machine.add_mount("10.0.0.1:/srv", "/data", "nfs4", "rw,vers=4.2,hard");
  doctor.system.machine.nfs["10.0.0.1"] = test::dead_nfs_server("10.0.0.1");
  doctor.system.machine.on_entry = [](const sys::EntryQuery& query,
                                      const std::optional<sys::User>&) -> std::optional<sys::Entry> {
    if (query.path == "/data")
      throw std::bad_alloc();
    return std::nullopt;
  };
  const auto parts = doctor.examine({});
  const auto mounts = of(parts, "mounts");
  REQUIRE(mounts.size() == 1);
  CHECK(mounts[0].code == "SF602");
  CHECK(mounts[0].message == "out of memory");
  const auto caches = std::ranges::find(parts, "caches", &Part::name);
  REQUIRE(caches != parts.end());
  CHECK_FALSE(caches->seen.empty()); // looked at all the same
}

TEST_CASE("what doctor did not come to is said") {
  Doctor doctor;
  Examination how;
  how.deadline = std::chrono::milliseconds(-1);
  for (const auto& part : doctor.examine(how)) {
    INFO(part.name);
    if (part.name == "configuration")
      CHECK(part.found.empty());
    else
      CHECK((part.found.size() == 1 && part.found[0].code == "SF602"));
  }
}
