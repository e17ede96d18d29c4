// sharefs --on NODES stage PATH: one node reads and packs the directory, and all nodes get its findings.
#include "base/json.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/stage/hand_on.hpp"
#include "cli/commands/stage/stage.hpp"
#include "cli/execute.hpp"
#include "conda/staged_path.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

/// Asks the nodes, one after the other until one can do it, for the survey of the directory or, with `packs`, to make
/// its image.
Result<fleet::Outcome> ask_one_of(Context& context, const fleet::Request& job, const std::string& path, bool packs) {
  constexpr int k_most_failures = 3; // if that many nodes fail, it is not the fault of one node
  auto nodes = job.nodes;
  std::ranges::stable_partition(nodes,
                                // A server need not mount its own share.
                                [](const auto& node) { return !node.in(fleet::k_servers); });
  std::optional<fleet::Outcome> worst;
  for (int failures = 0; const auto& node : nodes) {
    TRY_ASSIGN(const auto outcomes, ask_nodes(context, {node}, {"stage", path, "--pack", packs ? "--yes" : "--check"},
                                              std::chrono::hours(packs ? 24 : 1)));
    const auto& outcome = outcomes.front();
    if (is_good(outcome.state) || outcome.state == fleet::State::pending)
      return outcome;
    const bool was_reached = outcome.state == fleet::State::failed || outcome.state == fleet::State::timed_out;
    if (!worst || (was_reached && failures == 0))
      worst = outcome;
    if (was_reached && ++failures == k_most_failures)
      break;
  }
  return fail(ErrorCode::failed, fmt::format("{}: {}", worst->node, worst->why), worst->hint);
}

} // namespace

bool is_path(const std::string& word) {
  return word.find('/') != std::string::npos || word.starts_with('.');
}

Result<tree::Survey> survey_for_all(const std::string& text) {
  auto survey = conda::survey_in(text);
  if (!survey)
    return fail(ErrorCode::usage, fmt::format("--packed: `{}` is not what `--on NODES` says", text));
  return std::move(*survey);
}

Result<bool> agree_to_pack(Context& context, const std::string& path, const tree::Survey& survey) {
  const bool looks = context.flags.changes_nothing();
  const auto* be = looks ? "would be" : survey.files == 1 ? "is" : "are";
  const auto* what =
      conda::is_few_large(survey) ? "read once first, for checksums" : "packed into one file on the share first";
  context.console.message(
      fmt::format("{}: {} ({}) {} {}", path, count_of(survey.files, "file"), format_bytes(survey.bytes), be, what));
  if (looks)
    return false;
  auto agreed = ask_consent(context);
  if (!agreed || *agreed)
    return agreed;
  return fail(ErrorCode::interrupted, "nothing was changed");
}

Result<void> survey_for_nodes(Context& context, const Arguments& arguments, fleet::Request& job) {
  if (arguments.flag("list") || arguments.flag("drop") || arguments.positional.size() != 1 || job.nodes.empty())
    return {};
  const auto& word = arguments.positional.front();
  if (is_path(word)) {
    const auto path = normalize_path(word, context.host.working_directory);
    const auto surveyed = ask_one_of(context, job, path, false);
    if (!surveyed)
      return fail(surveyed.error());
    const auto packed = text_in(surveyed->document, "packed");
    TRY_ASSIGN(const auto survey, survey_for_all(packed));
    if (surveyed->state == fleet::State::pending) {
      TRY_ASSIGN(const auto agreed, agree_to_pack(context, path, survey));
      const auto made = agreed ? ask_one_of(context, job, path, true) : surveyed;
      if (!made && made.error().code == ErrorCode::interrupted)
        return fail(made.error());
      if (!made)
        context.console.warning("it gets no image: " + made.error().message, made.error().hint);
    }
    job.asking.words.insert(job.asking.words.end(), {"--packed", packed});
  }
  assign_upstreams(job);
  return {};
}

} // namespace sharefs::cli
