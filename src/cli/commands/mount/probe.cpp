// sharefs probe: reports what an NFS server answers, stage by stage. Needs neither root nor sharefs.yaml.
#include "mounts/probe.hpp"
#include "base/json_fields.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/mount/support.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace sharefs::cli {

namespace {

ui::Colour colour_of(sys::StageOutcome outcome) {
  using enum sys::StageOutcome;
  return outcome == ok       ? ui::Colour::green
         : outcome == absent ? ui::Colour::yellow
         : outcome == failed ? ui::Colour::red
                             : ui::Colour::dim;
}

/// Reads HOST, a server's name in sharefs.yaml, or either with `:/path`. It probes also if sharefs.yaml cannot be read.
sys::NfsProbeRequest server_request(Context& context, const std::string& word) {
  using namespace mounts;
  const bool whole_server = word.find('/') == std::string::npos;
  const auto source = parse_source(whole_server ? word + ":/" : word);
  sys::NfsProbeRequest request;
  request.host = source.server;
  if (!whole_server)
    request.paths = {source.path};
  const auto config = context.config_if_any();
  if (!config) {
    context.console.warning(config.error().message, "names of servers in sharefs.yaml are not known");
    return request;
  }
  if (*config != nullptr)
    for (const auto& server : (*config)->servers)
      if (server.name == source.server && !server.address.empty())
        request.host = server.address;
  return request;
}

/// Returns "can be mounted", or what prevents it. `path`: the path that was asked; empty: the whole server was.
std::string answer_for(const sys::NfsProbe& probe, int version, const std::string& path) {
  const auto* stage = probe.failing(version);
  const auto access = std::ranges::find(probe.access, path, &sys::ExportAccess::directory);
  if (stage == nullptr && access != probe.access.end() && access->version != 0 && access->version != version)
    return fmt::format("answers; {} is a path of NFS {} only", path, access->version);
  if (stage == nullptr) {
    const auto& result = probe.result_of(sys::ProbeStage::access);
    return result.outcome == sys::StageOutcome::failed ? "answers; access: " + result.detail : "can be mounted";
  }
  const bool asked_in_vain = stage->stage == sys::ProbeStage::nfs3 || stage->stage == sys::ProbeStage::nfs4;
  const bool unknown = asked_in_vain && (version == 3 ? probe.v3_unknown : probe.v4_unknown);
  const bool asked = stage->outcome != sys::StageOutcome::skipped;
  return fmt::format("{}: {}{}", unknown ? "not known" : "cannot be mounted", to_string(stage->stage),
                     asked ? ", " + stage->detail : " was not asked");
}

std::string permission_of(const sys::NfsProbe& probe, const sys::ExportAccess& access) {
  if (!access.allowed)
    return access.reason;
  return (access.version == 0 ? "may mount" : fmt::format("may mount by NFS {} only", access.version)) +
         (access.address.empty() || access.address == probe.address ? "" : ", by " + access.address) +
         (access.reason.empty() ? "" : "; " + access.reason);
}

void show(Context& context, const sys::NfsProbe& probe, const std::string& path) {
  ui::Table stages({{"STAGE"}, {"OUTCOME"}, {"TIME", true}, {"DETAIL", false, true}});
  for (const auto& stage : probe.stages)
    stages.add({{to_string(stage.stage)},
                {to_string(stage.outcome), colour_of(stage.outcome)},
                {stage.round_trip.count() > 0 ? format_duration(stage.round_trip.count()) : "-"},
                {stage.detail}});
  context.console.show(stages);
  ui::Table versions({{"VERSION"}, {"THIS HOST", false, true}});
  for (const int version : {3, 4}) {
    const auto answer = answer_for(probe, version, path);
    versions.add(
        {{fmt::format("NFS {}", version)}, {answer, answer == "can be mounted" ? ui::Colour::green : ui::Colour::red}});
  }
  context.console.print("\n");
  context.console.show(versions);
  std::map<std::string, std::string> permissions; // by directory
  for (const auto& one : probe.access)
    permissions.emplace(one.directory, permission_of(probe, one));
  std::set<std::string> listed;
  ui::Table exports({{"EXPORT"}, {"CLIENTS", false, true}, {"THIS HOST"}});
  for (const auto& one : probe.exports) {
    const auto known = permissions.find(one.directory);
    exports.add({{one.directory},
                 {one.clients.empty() ? "everyone" : join(one.clients, ", ")},
                 {known == permissions.end() ? "not asked" : known->second}});
    listed.insert(one.directory);
  }
  for (const auto& one : probe.access)
    if (!listed.contains(one.directory))
      exports.add({{one.directory}, {"not listed"}, {permission_of(probe, one)}});
  if (!exports.empty())
    context.console.print("\n");
  context.console.show(exports);
}

/// Returns the port that an option names; 0 without the option.
Result<std::uint16_t> read_port(const Arguments& arguments, const std::string& option) {
  const auto text = arguments.value(option);
  if (!text)
    return std::uint16_t{0};
  const auto port = parse_number<std::uint16_t>(*text);
  if (!port || *port == 0)
    return fail(ErrorCode::usage, fmt::format("`{}` is no TCP port", *text), "give a number from 1 to 65535");
  return *port;
}

Result<int> run_probe(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto timeout, arguments.time_limit("timeout"));
  const auto& word = arguments.positional.front();
  auto request = server_request(context, word);
  const bool absolute = request.paths.empty() || request.paths.front().starts_with('/');
  if (request.host.empty() || !absolute)
    return fail(ErrorCode::usage, fmt::format("`{}` names no {}", word, absolute ? "host" : "absolute path"),
                "give HOST or HOST:/path");
  request.timeout = timeout;
  TRY_ASSIGN(request.ports.nfs, read_port(arguments, "port"));
  TRY_ASSIGN(request.ports.mountd, read_port(arguments, "mountport"));
  const auto reply =
      mounts::ask_server(context.system, {word, request, arguments.flag("until-ready")}, say_to(context));
  auto json = json_of(reply.probe);
  json["usable_v3"] = reply.probe.usable(3);
  json["usable_v4"] = reply.probe.usable(4);
  context.envelope.fields["probe"] = std::move(json);
  if (!context.flags.json)
    show(context, reply.probe, request.paths.empty() ? "" : request.paths.front());
  context.report(reply.diagnoses);
  return reply.ready ? k_exit_ok : k_exit_failed;
}

} // namespace

extern const CommandSpec k_probe_command{
    .name = "probe",
    .summary = "Ask an NFS server what it offers to this host",
    .description =
        "Stage by stage: name, connection, portmapper, mountd, NFS 3, NFS 4, export list, and what this host may "
        "mount, each with its time; then which version of NFS can be mounted. The stage that fails is named with its "
        "usual cause and cure. Needs neither root nor nfs-common nor sharefs.yaml, and takes at most --timeout; "
        "with --until-ready each question does. Exit code 0 if the server can be used with one of the versions.",
    .example = "sharefs probe storage1\n"
               "sharefs probe 192.168.16.1:/mnt/share --timeout 2s   # may this host mount that?",
    .positional = {.name = "HOST",
                   .help = "host, address, or server of sharefs.yaml; HOST:/path asks for one export",
                   .min = 1,
                   .max = 1},
    .options =
        {{.names = "--until-ready", .help = "ask again until the server, or the export, can be mounted"},
         {.names = "--port", .value = "PORT", .help = "of the NFS server, as `port=` of mounts", .fallback = "2049"},
         {.names = "--mountport", .value = "PORT", .help = "of its mountd, as `mountport=`: no portmapper is asked"},
         {.names = "--timeout", .value = "TIME", .help = "for the whole probe", .fallback = "5s"}},
    .run = run_probe,
};

} // namespace sharefs::cli
