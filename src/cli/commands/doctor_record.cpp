#include "cli/commands/doctor_record.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/commands/anonymize.hpp"
#include "sys/recorded_system.hpp"

#include <fmt/format.h>

namespace sharefs::cli {

namespace {

using sys::Recording;

constexpr std::size_t k_largest_recording = 256U << 20U;
/// What was called there, beside the questions: sharefs' version, and the command line as far as it counts.
constexpr const char* k_made_by = "sharefs";
constexpr const char* k_call = "call";

Result<std::string> absolute(const Context& context, const std::string& name) {
  if (name.starts_with('/'))
    return normalize_path(name);
  if (context.host.working_directory == k_no_directory)
    return fail(ErrorCode::usage, fmt::format("{}: the working directory is gone, so give the whole path", name));
  return normalize_path(name, context.host.working_directory);
}

/// --config, the working directory, and the seconds of a measurement.
using Call = std::tuple<std::string, std::string, std::chrono::seconds>;

/// Names of this host, its users and servers; words of paths come from the texts themselves.
OtherNames other_names(sys::System& system, const Recording& recording) {
  OtherNames names;
  const auto identity = system.identity();
  names.add(identity.hostname);
  names.add(identity.user);
  if (const auto table = system.mounts())
    for (const auto& mount : table->entries()) {
      if (sys::is_nfs(mount))
        names.add(mount.source.substr(0, mount.source.find(":/")));
      names.add_paths_of(mount.target); // with blanks in it
    }
  recording.each_text([&](const std::string& text) { names.add_paths_of(text); });
  for (const auto& name : recording.keys_of("user"))
    names.add(name);
  for (const auto& name : recording.keys_of("server"))
    names.add(name);
  return names;
}

Result<std::vector<Part>> examine_answers(Context& context, const std::shared_ptr<Recording>& recording,
                                          Examination& how);

/// With other names. Words that sharefs itself asks for must stay as they are, or a replay would find no answer: it is
/// replayed, and what it asks for in vain is such a word, because no other name of this host is left in it.
std::string text_with_other_names(Context& context, sys::System& seen, const Recording& recording) {
  auto names = other_names(seen, recording);
  constexpr int k_most_rounds = 20; // a round for each directory on the way to something
  for (int round = 0;; ++round) {
    auto text = recording.text([&](const std::string& one) { return names.apply(without_secrets(one)); });
    const auto read = Recording::parse(text);
    Examination how;
    bool changed = false;
    if (round < k_most_rounds && read && examine_answers(context, *read, how))
      (*read)->each_unanswered_text([&](const std::string& one) { changed = names.keep_words_of(one) || changed; });
    if (!changed)
      return text;
  }
}

Result<void> write(Context& context, sys::System& seen, const std::string& path, const Recording& recording,
                   bool anonymous) {
  const auto text = anonymous ? text_with_other_names(context, seen, recording) : recording.text(without_secrets);
  return context.system.files().write_if(path, std::nullopt, text, 0600);
}

/// Whatever is there, a link too: it is not written over, and not through it.
Result<void> check_free(Context& context, const std::string& path) {
  const auto there = context.system.files().entry({.path = path});
  if (there.exists())
    return fail(ErrorCode::conflict, path + ": is there already", "name a new file");
  if (there.kind == sys::EntryKind::unknown)
    return fail(there.error());
  if (there.ancestor != parent_path(there.resolved))
    return fail(ErrorCode::not_found, parent_path(path) + ": there is no such directory");
  return {};
}

Result<std::vector<Part>> record(Context& context, const std::string& file, bool anonymous, const Examination& how) {
  const auto path = absolute(context, file);
  if (!path)
    return fail(path.error());
  if (auto free = check_free(context, *path); !free)
    return fail(free.error());
  const auto recording = std::make_shared<Recording>();
  recording->head[k_made_by] = SHAREFS_VERSION;
  recording->head[k_call] = sys::to_recorded(Call(context.flags.config, context.host.working_directory, how.seconds));
  sys::RecordedSystem system(&context.system, recording);
  Context seen(context.host, system, context.console, context.flags, context.argv);
  auto parts = examine(seen, how);
  if (auto written = write(context, system, *path, *recording, anonymous); !written)
    return fail(written.error());
  context.envelope.fields["recorded"] = to_utf8(*path);
  context.console.message(fmt::format("{} has what was seen; {}", to_utf8(*path),
                                      anonymous ? "names are replaced, addresses are not"
                                                : "with names of hosts, users and directories, and files' contents"));
  return parts;
}

/// The examination of what the recording has. `config`: it does not say how it was made.
Result<std::vector<Part>> examine_answers(Context& context, const std::shared_ptr<Recording>& recording,
                                          Examination& how) {
  const auto& head = recording->head;
  Call call;
  const auto given = head.find(k_call);
  const auto version = head.find(k_made_by);
  if (given == head.end() || !sys::from_recorded(*given, call) || version == head.end() || !version->is_string())
    return fail(ErrorCode::config, "does not say how it was made");
  auto& [config, directory, seconds] = call;
  how.seconds = seconds;
  auto host = context.host;
  host.working_directory = directory;
  host.environment.clear();
  auto flags = context.flags;
  flags.config = config;
  sys::RecordedSystem system(nullptr, recording);
  Context seen(host, system, context.console, flags, context.argv);
  return examine(seen, how);
}

Result<std::vector<Part>> replay(Context& context, const std::string& file, Examination& how) {
  const auto path = absolute(context, file);
  if (!path)
    return fail(path.error());
  const auto text = context.system.files().read(*path, k_largest_recording);
  if (!text)
    return fail(text.error());
  const auto recording = Recording::parse(*text);
  if (!recording)
    return fail(ErrorCode::config, fmt::format("{}:{}", *path, recording.error().message), recording.error().hint);
  auto examined = examine_answers(context, *recording, how);
  if (!examined)
    return fail(ErrorCode::config, fmt::format("{}:1: {}", *path, examined.error().message));
  auto parts = std::move(*examined);
  const auto unanswered = (*recording)->unanswered();
  if (unanswered.empty())
    return parts;
  auto& last = parts.emplace_back();
  last.name = "recording";
  for (const auto& question : unanswered)
    last.found.push_back({Severity::error, "SF606", to_utf8(*path),
                          fmt::format("has no answer to `{}`, so what is said of that counts for nothing", question),
                          fmt::format("sharefs {} wrote it, and this is {}: take the same",
                                      to_utf8((*recording)->head.at(k_made_by).get<std::string>()), SHAREFS_VERSION),
                          ""});
  return parts;
}

} // namespace

Result<std::vector<Part>> examine_recorded(Context& context, const Arguments& arguments, Examination& how) {
  const auto to = arguments.value("record"), from = arguments.value("replay");
  if (arguments.flag("anonymize") && !to)
    return fail(ErrorCode::usage, "`--anonymize` has no meaning without `--record FILE`");
  if ((to || from) && how.plans)
    return fail(ErrorCode::usage, "`--fix` goes with neither `--record` nor `--replay`",
                "`sharefs doctor --record FILE` first, then `sharefs doctor --fix`");
  if (to && from)
    return fail(ErrorCode::usage, "`--record` and `--replay` exclude each other");
  if (from && how.seconds.count() != 0)
    return fail(ErrorCode::usage, "`--seconds` has no meaning with `--replay`", "the recording's own count");
  if (from)
    return replay(context, *from, how);
  return to ? record(context, *to, arguments.flag("anonymize"), how) : examine(context, how);
}

} // namespace sharefs::cli
