// SIGKILL at any place of any plan: running it again completes it, and undo restores every byte.
// Random plans of file actions in a temporary root; SHAREFS_TEST_KILL_AT kills a forked child that applies them.
// More of them: SHAREFS_TEST_PLANS=500 unit_plan "[kill]"
#include "plan/apply.hpp"
#include "plan/journal.hpp"
#include "support/catch.hpp"
#include "willing_machine.hpp"

#include <csignal>
#include <random>
#include <set>
#include <sys/wait.h>

using namespace sharefs;
using namespace sharefs::plan;
namespace fs = std::filesystem;

namespace {

constexpr bool k_faults = // built in
#ifdef SHAREFS_FAULT_INJECTION
    true;
#else
    false;
#endif

/// What the plan's author believes is there: path -> content, "-> target", or "/" for a directory.
using Model = std::map<std::string, std::string>;

void build(const Model& model, const std::string& root) {
  for (const auto& [path, what] : model)
    if (what == "/")
      fs::create_directory(root + path);
    else if (what.starts_with("-> "))
      fs::create_symlink(what.substr(3), root + path);
    else
      test::put(root + path, what);
}

/// Makes random steps that are valid one after the other.
class Author {
 public:
  Author(unsigned seed, bool repeats) : m_random(seed), m_repeats(repeats) {
    for (const auto* directory : {"/a", "/b", "/a/sub"})
      m_model[directory] = "/";
    for (const auto* file : {"/f", "/a/f", "/b/f", "/g"})
      m_model[file] = std::string("content of ") + file;
    for (const auto* link : {"/l", "/a/l", "/b/l"})
      m_model[link] = "-> old";
    initial = m_model;
  }
  Model initial;

  Plan plan(std::size_t steps) {
    Plan plan;
    while (plan.steps.size() < steps)
      if (auto action = next())
        plan.add("group " + std::to_string(m_random() % 3), "why", std::move(*action));
    return plan;
  }

 private:
  std::string some(const std::function<bool(const std::string&)>& fits) {
    std::vector<std::string> paths;
    for (const auto& [path, what] : m_model)
      if (fits(what))
        paths.push_back(path);
    return paths.empty() ? "" : paths[m_random() % paths.size()];
  }
  std::string some_directory() {
    const auto found = some([](const std::string& what) { return what == "/"; });
    return m_random() % 3 == 0 ? "" : found;
  }
  std::string new_path() { return some_directory() + "/new" + std::to_string(m_counter++); }
  /// Without repeats a plan is like a room's: no step undoes or builds on another one's path, but for new directories.
  bool may_touch(const std::string& path) {
    if (m_repeats)
      return true;
    for (const auto& touched : m_touched)
      if (path == touched || path.starts_with(touched + "/") || touched.starts_with(path + "/"))
        return false;
    return true;
  }
  std::optional<Action> next() {
    const auto is_file = [](const std::string& what) { return what != "/" && !what.starts_with("-> "); };
    const auto is_link = [](const std::string& what) { return what.starts_with("-> "); };
    const auto is_directory = [](const std::string& what) { return what == "/"; };
    std::string path;
    std::optional<Action> action;
    switch (m_random() % 9) {
    case 0:
      path = new_path();
      if (!may_touch(path))
        return std::nullopt;
      action = File{path, std::nullopt, "new " + path, 0640};
      m_model[path] = "new " + path;
      break;
    case 1:
      path = some(is_file);
      if (path.empty() || !may_touch(path))
        return std::nullopt;
      action = File{path, m_model[path], m_model[path] + " more", 0640};
      m_model[path] += " more";
      break;
    case 2:
      path = some(is_file);
      if (path.empty() || !may_touch(path))
        return std::nullopt;
      action = remove_file(path, m_model[path]);
      m_model.erase(path);
      break;
    case 3:
      path = new_path();
      if (!may_touch(path))
        return std::nullopt;
      m_model[path] = "/";
      m_made.insert(path);
      return make_directory(path, 02751); // later steps may work in it
    case 4:
      path = some(is_directory);
      if (path.empty() || !may_touch(path) || m_model.upper_bound(path + "/") != m_model.lower_bound(path + "0"))
        return std::nullopt;
      action = remove_directory(path);
      m_model.erase(path);
      break;
    case 5:
      path = new_path();
      if (!may_touch(path))
        return std::nullopt;
      action = make_link(path, "made");
      m_model[path] = "-> made";
      break;
    case 6:
      path = some(is_link);
      if (path.empty() || !may_touch(path))
        return std::nullopt;
      if (m_random() % 2 == 0) {
        action = remove_link(path, m_model[path].substr(3));
        m_model.erase(path);
      } else {
        const auto target = "swapped" + std::to_string(m_counter++);
        action = Link{path, m_model[path].substr(3), target, {}};
        m_model[path] = "-> " + target;
      }
      break;
    case 7: {
      path = some([](const std::string&) { return true; });
      const auto to = new_path();
      if (!may_touch(path) || !may_touch(to) || to.starts_with(path + "/") || (!m_repeats && m_made.contains(path)))
        return std::nullopt;
      action = Rename{path, to, {}};
      Model moved;
      for (const auto& [old, what] : m_model)
        moved[old == path || old.starts_with(path + "/") ? to + old.substr(path.size()) : old] = what;
      m_model = moved;
      m_touched.insert(to);
      break;
    }
    default:
      path = some(is_directory);
      if (path.empty() || !may_touch(path))
        return std::nullopt;
      action = SetAccess{path, std::nullopt,
                         Access{::geteuid(), ::getegid(), static_cast<std::uint32_t>(0700U | m_random() % 0100), ""}};
      break;
    }
    m_touched.insert(path);
    return action;
  }

  std::mt19937 m_random;
  bool m_repeats;
  Model m_model;
  std::set<std::string> m_touched, m_made;
  int m_counter = 0;
};

struct Machine {
  explicit Machine(const Model& model) { build(model, root.path()); }
  test::TemporaryRoot root;
  test::ScriptedSystem system{root.path(), test::willing_machine()};
  Journal journal{system.files(), "/state"};

  std::map<std::string, std::string> tree() { return test::snapshot(root.path()); }
  Report run(const Plan& plan) { return apply(plan, system, journal, {}); }
  /// Apply in a child that dies at `place`; false if it came through.
  bool dies(const Plan& plan, const std::string& place) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("SHAREFS_TEST_KILL_AT", place.c_str(), 1);
      run(plan);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }
  Plan undo(const std::string& id) { return plan_undo(*journal.load(id), *journal.find_undos(id)); }
};

std::string place(std::size_t position) {
  return std::to_string(position / 2) + (position % 2 == 0 ? "" : "+");
}

std::string all_errors(const Report& report) {
  std::string text;
  for (const auto& result : report.results)
    if (result.error)
      text += std::to_string(result.step) + ": " + result.error->message + "\n";
  return text;
}

std::string text_of(const Plan& plan) {
  std::string text;
  for (const auto& step : plan.steps)
    text += step.group + ": " + describe(step.action) + "\n";
  return text;
}

unsigned plans_to_try(unsigned fallback) {
  const char* given = std::getenv("SHAREFS_TEST_PLANS");
  return given == nullptr ? fallback : static_cast<unsigned>(std::strtoul(given, nullptr, 10));
}

} // namespace

TEST_CASE("killed anywhere, the same plan run again completes it", "[kill]") {
  if (!k_faults)
    return;
  for (unsigned seed = 1; seed <= plans_to_try(1); ++seed) {
    Author author(seed, false);
    const auto plan = author.plan(4 + seed % 4);
    CAPTURE(seed, text_of(plan));
    Machine whole(author.initial);
    const auto initial = whole.tree();
    const auto uninterrupted = whole.run(plan);
    CAPTURE(all_errors(uninterrupted));
    REQUIRE(uninterrupted.ok());
    const auto wanted = whole.tree();
    REQUIRE(wanted != initial);
    for (std::size_t position = 0; position < 2 * plan.steps.size(); ++position) {
      CAPTURE(place(position));
      Machine machine(author.initial);
      REQUIRE(machine.dies(plan, place(position)));
      const auto report = machine.run(plan);
      CAPTURE(all_errors(report));
      REQUIRE(report.ok());
      REQUIRE(machine.tree() == wanted);
    }
  }
}

TEST_CASE("killed anywhere, undo restores every byte; undo itself may be killed too", "[kill]") {
  if (!k_faults)
    return;
  for (unsigned seed = 1; seed <= plans_to_try(1); ++seed) {
    Author author(1000 + seed, true);
    const auto plan = author.plan(3 + seed % 5);
    CAPTURE(seed, text_of(plan));
    for (std::size_t position = 0; position <= 2 * plan.steps.size(); ++position) {
      CAPTURE(place(position));
      Machine machine(author.initial);
      const auto initial = machine.tree();
      const bool killed = machine.dies(plan, place(position));
      REQUIRE(killed == (position < 2 * plan.steps.size()));
      const auto entry = *machine.journal.find_latest();
      REQUIRE(entry);
      REQUIRE(entry->state == (killed ? JournalState::unfinished : JournalState::complete));
      // The undo is cut off once, at a place that wanders with the first one, and run again.
      const auto first = machine.undo(entry->id);
      REQUIRE_FALSE(first.empty());
      REQUIRE(machine.dies(first, place((position + seed) % (2 * first.steps.size()))));
      REQUIRE((*machine.journal.find_latest())->id == entry->id);
      const auto second = machine.undo(entry->id);
      const auto report = machine.run(second);
      CAPTURE(text_of(first), text_of(second), all_errors(report));
      REQUIRE(report.ok());
      REQUIRE(machine.tree() == initial);
      REQUIRE(machine.journal.load(entry->id)->state == JournalState::undone);
    }
  }
}

TEST_CASE("killed and run again, undo of both runs restores every byte", "[kill]") {
  if (!k_faults)
    return;
  Author author(78, false);
  const auto plan = author.plan(3);
  for (std::size_t position = 0; position < 2 * plan.steps.size(); ++position) {
    CAPTURE(place(position), text_of(plan));
    Machine machine(author.initial);
    const auto initial = machine.tree();
    REQUIRE(machine.dies(plan, place(position)));
    machine.system.machine.now += std::chrono::seconds(1);
    REQUIRE(machine.run(plan).ok());
    // The newest first, as a person would do it.
    while (const auto entry = *machine.journal.find_latest()) {
      machine.system.machine.now += std::chrono::seconds(1);
      const auto report = machine.run(machine.undo(entry->id));
      CAPTURE(all_errors(report));
      REQUIRE(report.ok());
    }
    REQUIRE(machine.tree() == initial);
  }
}

TEST_CASE("the product does not obey SHAREFS_TEST_KILL_AT", "[kill]") {
  if (k_faults)
    return;
  Author author(1, false);
  const auto plan = author.plan(4);
  Machine machine(author.initial);
  CHECK_FALSE(machine.dies(plan, "0"));
  CHECK_FALSE(machine.dies(plan, "0+"));
}
