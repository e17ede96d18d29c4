#pragma once
// A machine whose files that mount at boot are real ones, for the tests of these.
#include "mounts/boot.hpp"
#include "plan/apply.hpp"
#include "samples.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>
#include <fmt/ranges.h>
#include <set>
#include <sys/stat.h>

namespace sharefs::test {

/// A machine's /etc on disk, with systemd or without.
struct BootMachine {
  TemporaryDirectory root;
  ScriptedSystem system{root.path(), {}};

  explicit BootMachine(bool systemd = true) {
    system.machine.identity.systemd = systemd;
    system.machine.on_run = [](const sys::Command&) {
      sys::Completed good;
      good.exit_code = 0;
      return good;
    };
    std::filesystem::create_directories(root.path() + "/etc/systemd/system/multi-user.target.wants");
  }
  [[nodiscard]] std::string at(const std::string& path) const { return root.path() + path; }
  void put(const std::string& path, const std::string& text, mode_t mode = 0644) const {
    std::filesystem::create_directories(std::filesystem::path(at(path)).parent_path());
    root.write(path.substr(1), text);
    ::chmod(at(path).c_str(), mode);
  }
  mounts::BootPlan plan(mounts::BootWay way, const std::string& options = "rw,vers=4.2") {
    auto point = share();
    point.boot = way;
    point.options = mounts::parse_options({options});
    return mounts::plan_boot(mounts::read_boot_facts(system), mounts::read_boot_host(system), {point});
  }
  /// Every step of it; the plan after that must be empty.
  void apply(mounts::BootWay way) {
    for (const auto& step : plan(way).plan.steps) {
      const auto done = plan::apply_action(step.action, system);
      INFO(plan::describe(step.action) << (done ? "" : ": " + done.error().message));
      CHECK(done);
    }
    CHECK(plan(way).plan.empty());
  }
  std::vector<mounts::BootEntry> entries() { return mounts::read_boot_facts(system).entries; }
  /// Path and content of all files and links of /etc.
  [[nodiscard]] std::string etc() const {
    std::set<std::string> all;
    for (const auto& one : std::filesystem::recursive_directory_iterator(at("/etc")))
      all.insert(one.path().string().substr(root.path().size()) +
                 (one.is_symlink()        ? " -> " + std::filesystem::read_symlink(one).string()
                  : one.is_regular_file() ? ":\n" + root.read(one.path().string().substr(root.path().size() + 1))
                                          : "/"));
    return fmt::format("{}\n", fmt::join(all, "\n"));
  }
};

} // namespace sharefs::test
