#include "fleet/push.hpp"

#include "base/argv.hpp"
#include "base/text.hpp"
#include "fleet/script.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace sharefs::fleet {

namespace {

constexpr std::string_view k_config = "/etc/sharefs/sharefs.yaml";

nlohmann::ordered_json step(const std::string& description, const std::string& why) {
  return {{"description", description}, {"why", why}};
}

std::string write_config() {
  return fmt::format("write {}", k_config);
}

} // namespace

std::string installed_script(const std::string& prefix, const std::string& program, const std::string& guard,
                             const std::string& config) {
  return script_of({{"work", "ask"}, {"prefix", prefix}, {"config", config}, {"program", program}, {"guard", guard}},
                   k_push_script);
}

std::optional<Installed> parse_installed(std::string_view out) {
  const auto reports = parse_reports(out);
  if (!reports.contains("end"))
    return std::nullopt;
  const auto last = [&](const char* key) { return last_report(reports, key); };
  return Installed{.machine = last("machine"),
                   .program = last("program"),
                   .program_sum = last("program_sum"),
                   .guard_sum = last("guard_sum"),
                   .config_sum = last("config_sum"),
                   .package = last("package"),
                   .config_is_link = reports.contains("config_is_link")};
}

Outcome plan_push(const Node& node, const PushContent& content, const Installed& there) {
  const auto refuse = [&](std::string why, std::string hint) {
    return Outcome{.node = node.name, .state = State::failed, .why = std::move(why), .hint = std::move(hint)};
  };
  const bool by_package = !content.package.empty();
  const bool same_program =
      by_package ? there.package == content.package : there.program_sum == content.here.program_sum;
  const bool same_guard = by_package || content.here.guard_sum.empty() || there.guard_sum == content.here.guard_sum;
  if (!by_package && !same_program && there.machine != content.here.machine)
    return refuse(fmt::format("this program is for {}, and the node is {}", content.here.machine, there.machine),
                  "`sharefs nodes push --package FILE NODE` with a package for it");
  if (!by_package && !(same_program && same_guard) && !there.package.empty())
    return refuse(fmt::format("{} there belongs to a package ({})", there.program, there.package),
                  "`sharefs nodes push --package FILE NODE` with the package of this version");
  if (by_package && !there.program.empty() && there.package.empty())
    return refuse(fmt::format("{} there belongs to no package, and comes before it in PATH", there.program),
                  fmt::format("remove it there: `ssh NODE rm {}`", shell_quote(there.program)));
  if (there.config_is_link && there.config_sum != content.here.config_sum)
    return refuse(fmt::format("{} is a symbolic link there", k_config),
                  "replace it by a file, or change what it leads to");
  auto steps = nlohmann::ordered_json::array();
  const auto program = there.program.empty() ? content.prefix + "/bin/sharefs" : there.program;
  if (!same_program && by_package)
    steps.push_back(step("install the package sharefs " + content.package,
                         there.package.empty() ? "there is none" : "in place of " + there.package));
  else if (!same_program)
    steps.push_back(
        step("write " + program, there.program.empty() ? "there is no sharefs" : "the old one is kept as sharefs.old"));
  if (!same_guard)
    steps.push_back(step("write the guard", "what `sharefs run` puts in front of PYTHONPATH"));
  if (there.config_sum != content.here.config_sum)
    steps.push_back(
        step(write_config(), there.config_sum.empty() ? "there is none" : "the old one is kept as sharefs.yaml.old"));
  if (steps.empty())
    return {.node = node.name, .state = State::ok};
  Outcome outcome{.node = node.name, .state = State::pending, .why = count_of(steps.size(), "step") + " to do"};
  outcome.document = {{"plan", {{"steps", std::move(steps)}}}};
  return outcome;
}

bool sends_program(const Outcome& planned) {
  if (planned.state != State::pending)
    return false;
  const auto& steps = planned.document.at("plan").at("steps");
  return std::ranges::any_of(steps, [](const auto& each) { return each.at("description") != write_config(); });
}

std::string install_script(const PushContent& content) {
  return script_of({{"work", "install"},
                    {"prefix", content.prefix},
                    {"program_sum", content.here.program_sum},
                    {"version", content.version},
                    {"package", content.package}},
                   k_push_script);
}

} // namespace sharefs::fleet
