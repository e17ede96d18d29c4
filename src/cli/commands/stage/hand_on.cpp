// sharefs nodes serve: sends a file to the next nodes while this node stages it.
#include "cli/commands/stage/hand_on.hpp"

#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/stage/stage.hpp"
#include "cli/on_nodes.hpp"
#include "fleet/outcome.hpp"
#include "fleet/reach.hpp"
#include "tree/tree.hpp"

#include <algorithm>

namespace sharefs::cli {

namespace {

/// Longest wait for the file to appear or to grow: the asking node may have begun before this one, which may still wait
/// for its own upstream.
constexpr std::chrono::seconds k_serve_patience{15};

/// Returns the ssh command line for a node. It runs as the user who may log in there, whom sudo(8) names in SUDO_USER.
tree::Upstream upstream_at(Context& context, const fleet::Node& node, const Argv& words) {
  tree::Upstream upstream{
      .name = node.name, .argv = {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5"}, .as = {}};
  const auto to = fleet::ssh_words(node);
  upstream.argv.insert(upstream.argv.end(), to.begin(), to.end());
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

/// Returns the numbers of the nodes that serve the node `place`, nearest first. In a chain each node receives and sends
/// at the full speed of one link; if a chain would be too long, each node serves two.
std::vector<std::size_t> before(std::size_t place, std::size_t nodes) {
  constexpr std::size_t k_most_in_chain = 16;
  std::vector<std::size_t> numbers;
  while (place > 0) {
    place = nodes <= k_most_in_chain ? place - 1 : (place - 1) / 2;
    numbers.push_back(place);
  }
  return numbers;
}

} // namespace

void assign_upstreams(fleet::Request& job) {
  for (std::size_t place = 0; place < job.nodes.size(); ++place) {
    std::vector<std::string> names;
    for (const auto number : before(place, job.nodes.size()))
      names.push_back(job.nodes[number].name);
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
