// Staging on many nodes. sharefs --on NODES stage PATH: one node reads and packs the directory, and all nodes get its
// findings. sharefs nodes serve: sends a file to the next nodes while this node stages it.
#include "cli/commands/stage/stage.hpp"

#include "base/json.hpp"
#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/execute.hpp"
#include "cli/on_nodes.hpp"
#include "conda/staged_path.hpp"
#include "fleet/outcome.hpp"
#include "fleet/reach.hpp"
#include "tree/tree.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

/// Longest wait for the file to appear or to grow: the asking node may have begun before this one, which may still wait
/// for its own upstream.
constexpr std::chrono::seconds k_serve_patience{15};

/// Returns the ssh command line for a node. It runs as the user who may log in there, whom sudo(8) names in SUDO_USER.
tree::Upstream upstream_at(Context& context, const fleet::Node& node, const Argv& words) {
  tree::Upstream upstream{.name = node.name, .argv = {"ssh"}, .as = {}};
  for (const auto& more : {fleet::ssh_options(std::chrono::seconds(5)), fleet::ssh_words(node)})
    upstream.argv.insert(upstream.argv.end(), more.begin(), more.end());
  upstream.argv.push_back(fleet::node_line(words, true));
  if (const auto caller = context.environment("SUDO_USER"); caller && context.system.identity().uid == 0)
    if (auto user = context.system.user(*caller); user && user->uid != 0)
      upstream.as = std::move(*user);
  return upstream;
}

Result<int> run_serve(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto config, context.config());
  const auto path = normalize_path(arguments.positional.at(0));
  const auto bytes = parse_number<std::uint64_t>(arguments.value("bytes").value_or(""));
  const auto offset = parse_number<std::uint64_t>(arguments.positional.at(1));
  if (!bytes || !offset)
    return fail(ErrorCode::usage, "`sharefs nodes serve` is started by other nodes' `sharefs stage`");
  auto stages = stage_directories(*config);
  stages.merge(staged_paths_directories(context));
  const auto stage = std::ranges::find_if(stages, [&](const auto& one) { return is_under(path, one); });
  if (stage == stages.end() || path != arguments.positional.at(0))
    return fail(ErrorCode::permission, path + " is not a staged file");
  // The owner of a staged directory could replace the file, so the receiving node checks it. Links in the directory
  // were made by root as they were on the share and may lead anywhere, so no link is followed.
  const tree::Place place{
      .path = path, .root = context.system.files().root(), .guarded = path.ends_with(".sqfs"), .beneath = *stage};
  TRY(tree::serve(place, *bytes, *offset, STDOUT_FILENO, k_serve_patience));
  return k_exit_ok;
}

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

void assign_upstreams(fleet::Request& job) {
  constexpr std::size_t k_most_in_chain = 16;
  for (std::size_t place = 0; place < job.nodes.size(); ++place) {
    std::vector<std::string> names; // of the nodes that serve this one, nearest first
    for (auto at = place; at > 0;) {
      // In a chain each node receives and sends at the full speed of one link; if a chain would be too long, each node
      // serves two.
      at = job.nodes.size() <= k_most_in_chain ? at - 1 : (at - 1) / 2;
      names.push_back(job.nodes[at].name);
    }
    if (!names.empty())
      job.nodes[place].words = "--upstreams " + join(names, ",");
  }
  job.at_once = true;
}

Result<conda::Upstreams> upstreams_of(Context& context, const Arguments& arguments) {
  const auto word = arguments.value("upstreams");
  if (!word)
    return conda::CopySettings{}.upstreams;
  TRY_ASSIGN(const auto names, fleet::expand(*word));
  const auto known = known_nodes(context).value_or(std::vector<fleet::Node>{});
  std::vector<fleet::Node> nodes;
  for (const auto& name : names) {
    const auto found = std::ranges::find(known, name, &fleet::Node::name);
    nodes.push_back(found != known.end() ? *found : fleet::Node{.name = name});
  }
  return conda::Upstreams([&context, nodes](const std::string& file, std::uint64_t bytes) {
    std::vector<tree::Upstream> upstreams;
    const Argv words{"sharefs", "nodes", "serve", file, "--bytes", std::to_string(bytes), "--"};
    for (const auto& node : nodes)
      upstreams.push_back(upstream_at(context, node, words));
    return upstreams;
  });
}

conda::Fetched note_of_fetched(Context& context) {
  return [&context](const tree::FetchReport& fetched) {
    context.envelope.fields["from"] = to_utf8(fetched.by);
    if (!fetched.by.empty() || fetched.passed_over.empty())
      return;
    constexpr int k_ssh_failed = 255; // ssh(1)
    const auto ssh = fleet::outcome_of({}, {}, {.exit_code = k_ssh_failed, .errors = fetched.passed_over});
    const bool is_untrusted = ssh.state == fleet::State::denied || ssh.state == fleet::State::host_key;
    context.report({{Severity::info, "SF537", "", "it came from the share: " + fetched.passed_over,
                     is_untrusted ? "`sharefs nodes trust --mesh` lets nodes hand it on" : "", ""}});
  };
}

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
  context.console.proposal(
      fmt::format("{}: {} ({}) {} {}", path, count_of(survey.files, "file"), format_bytes(survey.bytes), be, what));
  if (looks)
    return false;
  auto agreed = ask_consent(context);
  if (!agreed || *agreed)
    return agreed;
  return fail(ErrorCode::failed, path + " was not staged");
}

Result<void> survey_for_nodes(Context& context, const Arguments& arguments, fleet::Request& job) {
  if (arguments.flag("list") || arguments.flag("drop") || arguments.positional.size() != 1 || job.nodes.empty())
    return {};
  const auto& word = arguments.positional.front();
  if (is_path(word)) {
    const auto path = normalize_path(word, context.host.working_directory);
    std::ranges::replace(job.asking.words, word, path);
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

extern const CommandSpec k_nodes_serve_command{
    .name = "nodes serve",
    .summary = "Hand a staged file on to another node; `stage --on NODES` does it",
    .description =
        "Prints a file that is staged here, or is being staged, from an offset on: what the nodes behind this "
        "one ask for, so that the server sends it once. Nothing but images below `conda.stage` and "
        "`stage.at` is handed on.",
    .example = "sharefs nodes serve /var/cache/x/0a1b.sqfs 0 --bytes 4096",
    .positional = {.name = "FILE OFFSET", .help = "its path, and where to begin", .min = 2, .max = 2},
    .options = {{.names = "--bytes", .value = "N", .help = "its size when it is complete"}},
    .run = run_serve,
};

} // namespace sharefs::cli
