#include "cachefix/run_plan.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cachefix/launch.hpp"
#include "cachefix/script.hpp"
#include "plan/apply.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace sharefs::cachefix {
namespace {

constexpr std::size_t k_most_scripts = 16;            // read for one program, each named by one before it
constexpr std::size_t k_longest_script = 128U << 10U; // nobody writes a longer one by hand, and it takes long to read

/// Replaces the decisions for a program whose nodes are not known now: sharefs is started on the node and decides
/// there. A batch script, which takes no words in front, only gets the guard.
Decisions decide_on_node(const Launch& launch, const Program& program, Decisions decided) {
  const auto& links = program.chain;
  const auto found = std::ranges::find_if(
      links, [&](const ChainLink* link) { return link->certain && on_unknown_nodes(launch, *link); });
  const auto change = std::ranges::find_if(decided, &Decision::is_change);
  const bool lost = launch.rules.guard && !is_plain_tool(program) && !can_carry(launch, program);
  if (found == links.end() || (change == decided.end() && !lost))
    return decided;
  const ChainLink& starter = **found;
  const std::string flag = change == decided.end() ? program.name : change->flag;
  std::erase_if(decided, [](const Decision& one) { return one.is_change() || one.action == Action::warn; });
  if (!launch.walk.understood || !takes_words(launch, program, starter))
    return decided;
  if (launch.rules.node.empty()) {
    decided.push_back(warning("SF421", starter.name,
                              "starts it on nodes that are not known now, where sharefs may not be installed, so `" +
                                  flag + "` was left on shared storage",
                              "install sharefs in /usr or on the share, or put `sharefs run --` behind it"));
    return decided;
  }
  const auto behind = std::next(found);
  const std::size_t at = behind == links.end() ? program.index : (*behind)->index;
  decided.push_back({.action = Action::set,
                     .flag = starter.name,
                     .to = "sharefs run --node",
                     .rule = "node",
                     .reason = starter.name + " starts it on nodes that are not known now: sharefs decides there",
                     .edits = {{at, 0, 0, "", launch.rules.node}}});
  return decided;
}

/// Reports all that takes the guard away from a program in one warning: launchers that hand on no variables, shell
/// texts, and the scripts that they name. Takes PYTHONPATH back if one of them has a default for it, which counts only
/// if it is not set.
Decisions report_losses(const Launch& launch, const Program& program, Decisions& decided) {
  if (!launch.rules.guard && std::ranges::none_of(decided, &Decision::variable))
    return {};
  ScriptReport all = launch.rules.guard ? read_program(launch, program) : ScriptReport();
  const bool certain = std::ranges::all_of(launch.walk.chain, &ChainLink::certain);
  const bool on_a_node = std::ranges::find(decided, "node", &Decision::rule) != decided.end();
  // A Python that does not read PYTHONPATH is no loss if words or other variables have moved its caches.
  const bool isolated = is_isolated(program) && std::ranges::none_of(decided, [](const Decision& one) {
                          return one.is_change() && one.rule != "guard";
                        });
  const bool lost = !certain || isolated || (!on_a_node && !can_carry(launch, program));
  if (const Mention loss = find_loss(launch);
      loss.subject == "RAY_ADDRESS" || (lost && loss.code == "SF407" && loss.subject != "PYTHONPATH="))
    all.losses.insert(all.losses.begin(), loss); // a PYTHONPATH in a word is no loss: the guard was added to it
  for (std::size_t i = 0; i < all.scripts.size() && i < k_most_scripts; ++i) {
    const NamedScript script = all.scripts[i];
    const std::string path = launch.find_file(program, script.name, true);
    const std::string start = path.empty() ? "" : launch.facts.find(path, PathFact::start).content;
    const bool python = is_python_start(start); // perhaps an archive; its `#!` line may have -I
    if (start.empty() || (!python && start.find('\0') != std::string::npos))
      continue;
    const std::string text =
        python ? start.substr(0, start.find('\n')) : launch.facts.find(path, PathFact::text).content;
    if (text.size() > k_longest_script)
      continue;
    const ScriptReport report = read_script(text, launch.facts, script, launch.variable(program, "PATH").value_or(""));
    for (const auto& [found, into] : {std::pair(&report.losses, &all.losses), {&report.defaults, &all.defaults}})
      for (Mention loss : *found) {
        loss.subject = script.name + ":" + std::to_string(loss.line) + ": " + loss.subject;
        into->push_back(std::move(loss));
      }
    for (const NamedScript& named : report.scripts)
      add_once(all.scripts, named);
  }
  if (!all.defaults.empty() && !launch.variable(program, "PYTHONPATH") &&
      std::erase_if(decided, [](const Decision& one) { return one.rule == "guard" && one.flag == "PYTHONPATH"; }) > 0)
    all.losses.insert(all.losses.begin(), all.defaults.front());
  if (all.losses.empty())
    return {};
  Mention first = all.losses.front();
  if (all.losses.size() > 1)
    first.says += " (and " + count_of(all.losses.size() - 1, "place") + " like it)";
  return {warning(first)};
}

Decisions decide_program(const Launch& launch, const Program& program) {
  const Row* const framework = framework_of(program, launch.argv);
  Decisions decided = decide_on_node(launch, program, decide_caches(launch, program, framework));
  append(decided, decide_guard(launch, program));
  append(decided, report_losses(launch, program, decided));
  return decided;
}

Decisions decide_launch(const Launch& launch) {
  Decisions out = decide_in_container(launch);
  for (const Mention& one : launch.walk.problems) // with a guard, which the environment brings, SF401 matters little
    out.push_back(warning(one, launch.rules.guard && one.code == "SF401" ? Severity::info : Severity::warning));
  const Mention loss = find_loss(launch);
  if (loss.code == "SF404" && !launch.walk.programs.empty()) { // a variable makes Slurm start them in a container
    out.push_back(warning(loss));
    return out;
  }
  Decisions decided;
  for (const Program& program : launch.walk.programs)
    append(decided, decide_program(launch, program));
  append(decided, carry(launch, decided));
  append(out, std::move(decided));
  return out;
}

void assemble(Decisions decisions, Facts& facts, RunPlan& out) {
  for (Decision& one : decisions) {
    if (one.diagnosis) {
      add_once(out.diagnoses, *std::move(one.diagnosis));
      continue;
    }
    if (one.is_environment())
      out.set[one.flag] = *one.to;
    if (one.is_change() && !one.stands_for.empty())
      out.directories[*one.to] = one.stands_for; // made, with mode 0700, before the program starts
    for (const std::string& name : one.models)
      out.links[*one.to + "/" + name] = one.stands_for + "/" + name;
    add_once(one.is_change() ? out.changes : one.action == Action::guard ? out.guarded : out.kept, std::move(one));
  }
  const auto is_used = [&](const std::string& root) {
    return std::ranges::any_of(out.directories, [&](const auto& one) { return parent_path(one.first) == root; });
  };
  if (out.directories.empty())
    return;
  // Explains why a directory that holds them is no disk of caches.local.
  const auto& local = facts.local();
  if (is_used(local.directory))
    std::ranges::move(diagnose(local, Severity::error), std::back_inserter(out.diagnoses));
  if (is_used(local.for_code))
    std::ranges::move(diagnose_code(local, Severity::error), std::back_inserter(out.diagnoses));
}

} // namespace

const char* to_string(Action action) {
  return name_in(std::array{"leave", "rewrite", "set", "guard", "warn"}, action);
}

Decision warning(std::string code, const std::string& subject, std::string message, std::string hint,
                 Severity severity) {
  return {.action = Action::warn,
          .flag = subject,
          .diagnosis = Diagnosis{severity, std::move(code), to_utf8(subject), std::move(message), std::move(hint), ""}};
}

Decision warning(const Mention& mention, Severity severity) {
  return warning(mention.code, mention.subject, mention.says, mention.hint, severity);
}

void append(Decisions& all, Decisions more) {
  std::ranges::move(more, std::back_inserter(all));
}

Argv edited(const Argv& argv, const Decisions& decisions) {
  std::vector<Edit> all;
  for (const Decision& decision : decisions)
    for (const Edit& edit : decision.edits)
      if (std::ranges::find(all, edit) == all.end())
        all.push_back(edit);
  // Edits are made from the last word to the first, and within a word from right to left, so that an edit never moves
  // the place of the next. Of several insertions at one place the first stays in front.
  std::ranges::reverse(all);
  std::ranges::stable_sort(all, [](const Edit& a, const Edit& b) {
    return std::tuple(b.word, !a.words.empty(), b.begin) < std::tuple(a.word, !b.words.empty(), a.begin);
  });
  Argv result = argv;
  for (const Edit& edit : all)
    if (edit.words.empty())
      result[edit.word].replace(edit.begin, edit.end - edit.begin, edit.text);
    else
      result.insert(result.begin() + static_cast<std::ptrdiff_t>(edit.word), edit.words.begin(), edit.words.end());
  return result;
}

Result<void> prepare(sys::System& system, const RunPlan& decided) {
  TRY(make_caches(system, decided.directories));
  for (const auto& [path, target] : decided.links) {
    const auto made = plan::apply_action(plan::make_link(path, target), system);
    if (!made && made.error().code != ErrorCode::conflict) // conflict: this model was downloaded to the node before
      return fail(made.error());
  }
  return {};
}

RunPlan plan_run(const Argv& argv, const Start& start, Facts& facts, const Rules& rules) {
  const Walk walked = walk(argv, start.directory);
  const Launch launch{argv, walked, start, facts, rules};
  RunPlan out;
  for (const Program& program : walked.programs) {
    const Row* const framework = framework_of(program, argv);
    if (const bool from_stdin = program.name == "-" && argv[program.index] != "-";
        walked.understood && program.kind != ProgramKind::shell && !from_stdin)
      out.scripts.push_back(
          {program.index, program.name, framework == nullptr ? std::nullopt : std::optional(framework->name)});
  }
  for (const ChainLink& link : walked.chain)
    if (link.certain && std::ranges::find(out.chain, link.index, &ChainLink::index) == out.chain.end())
      out.chain.push_back(link);
  // A nested `sharefs run` decides about its own command.
  const bool nested = std::ranges::find(out.chain, "sharefs", &ChainLink::name) != out.chain.end();
  const auto off = start.environment.find("SHAREFS_CACHEFIX");
  if ((off != start.environment.end() && off->second == "0") || nested || !facts.any_shared()) {
    out.argv = argv;
    return out;
  }
  Decisions decisions = decide_launch(launch);
  out.argv = edited(argv, decisions);
  assemble(std::move(decisions), facts, out);
  return out;
}

} // namespace sharefs::cachefix
