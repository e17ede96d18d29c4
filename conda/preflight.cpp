// Checks that an environment can be shared. Pure.
#include "conda/environment_reader.hpp"
#include "conda/share.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/visible.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::conda {

namespace {

constexpr std::size_t k_first_line_limit = 127; // bytes that the kernel reads, with `#!`

/// The severity of a finding for a copy with another prefix. Kinds without a row are repaired in the copy.
struct CopySeverity {
  Kind kind;
  Severity severity;
};
constexpr std::array<CopySeverity, 12> k_severities{{{Kind::missing, Severity::warning},
                                                     {Kind::altered, Severity::warning},
                                                     {Kind::bad_record, Severity::error},
                                                     {Kind::unreadable, Severity::error},
                                                     {Kind::changing, Severity::error},
                                                     {Kind::other_prefix, Severity::warning},
                                                     {Kind::no_room, Severity::error},
                                                     {Kind::editable, Severity::error},
                                                     {Kind::set_id, Severity::error},
                                                     {Kind::special, Severity::error},
                                                     {Kind::foreign, Severity::error},
                                                     {Kind::nobody, Severity::warning}}};

/// True for a path of the operating system, which is the same for all users and hosts.
bool is_of_system(const std::string& target) {
  constexpr std::array<std::string_view, 6> k_system{"/usr", "/lib", "/lib64", "/bin", "/etc", "/dev"};
  return std::ranges::any_of(k_system, [&](std::string_view top) { return is_under(target, std::string(top)); });
}

void add_findings(const EnvironmentState& state, Diagnoses& found) {
  for (const auto& [kind, severity] : k_severities) {
    auto only = state;
    std::erase_if(only.found, [kind = kind](const Found& one) { return one.kind != kind; });
    for (auto& one : diagnose(only)) {
      one.severity = severity;
      found.push_back(std::move(one));
    }
  }
}

/// True if a user who may enter a tree with the mode `top` cannot read the entry.
bool is_closed(std::uint32_t top, const struct stat& status) {
  const auto wanted = bits_as_open_as(top, status.st_mode);
  return !S_ISLNK(status.st_mode) && (status.st_mode & wanted) != wanted;
}

tl::unexpected<Error> refused(const EnvironmentState& of, const std::string& path, const std::string& why) {
  return fail(ErrorCode::permission, join_path(of.path, path) + ": " + why + ", and is not shared",
              "see whose it is and why it lies there; take it out, or give it to the owner of the environment");
}

std::string whose(const struct stat& status) {
  return fmt::format("belongs to uid {}, not to the owner of the environment", status.st_uid);
}

} // namespace

tree::Admit admit_copied(const EnvironmentState& of) {
  return [&of](const std::string& path, const struct stat& status) -> Result<bool> {
    if (status.st_uid != of.uid)
      return refused(of, path, whose(status));
    if (of.others_write && is_closed(of.mode, status))
      return refused(of, path, "only its owner can read it, and others may have put it there");
    return true;
  };
}

tree::Admit admit_opened(const EnvironmentState& of, std::uint32_t wanted) {
  return [&of, wanted](const std::string& path, const struct stat& status) -> Result<bool> {
    if (status.st_uid != of.uid && is_closed(wanted, status))
      return refused(of, path, whose(status));
    if (of.others_write && is_closed(of.mode & wanted, status))
      return refused(of, path, "only its owner can read it, and others may have put it there");
    return true;
  };
}

Diagnoses preflight(const Preflight& facts) {
  const auto& state = facts.state;
  Diagnoses found;
  const auto say = [&](Severity severity, const char* code, std::string message, std::string hint) {
    found.push_back({severity, code, state.path, std::move(message), std::move(hint), ""});
  };
  if (facts.base)
    say(Severity::error, "SF519", "it is the base environment: conda itself, with the other environments in it",
        "make one that can be shared: `conda create --name NAME --clone base`");
  if (!facts.users.empty())
    say(Severity::error, "SF520", "it is in use by " + first_of(facts.users),
        "`conda deactivate`, let its programs end, then run it again");
  add_findings(state, found);
  std::vector<std::string> links;
  for (const auto& one : state.found)
    if (one.kind == Kind::outside_link && !is_of_system(one.detail))
      links.push_back(visible(one.path) + " -> " + visible(one.detail));
  if (!links.empty())
    say(Severity::error, "SF521",
        fmt::format("{} out of the environment, which others cannot follow: {}", count_of(links.size(), "link"),
                    links.front()),
        "put there what they lead to (`cp --remove-destination`); into a package cache: `conda config --set "
        "allow_softlinks false`, then install the packages again");
  if (state.others_write)
    say(Severity::warning, "SF522", "others than its owner may write in it, also while it is copied",
        "ask them not to; what changes during the copy is found and stops it");
  if (facts.space) {
    const auto& space = *facts.space;
    const auto bytes = state.bytes - std::min(state.bytes, facts.copied.bytes);
    const auto files = state.files - std::min(state.files, facts.copied.files);
    const std::string rest = facts.copied.files > 0 ? "of it are still to be copied" : "are to be copied";
    const auto hint =
        "`sharefs conda list` shows what is there: `sharefs conda gc NAME` deletes what nobody needs of it";
    if (space.size_bytes > 0 && space.free_bytes < bytes)
      say(Severity::error, "SF523",
          fmt::format("{} {}, and the store has room for {}", format_bytes(bytes), rest,
                      format_bytes(space.free_bytes)),
          hint);
    if (space.files > 0 && space.free_files < files)
      say(Severity::error, "SF523",
          fmt::format("{} {}, and the store can take {} more (inodes)", count_of(files, "file"), rest,
                      space.free_files),
          hint);
  }
  const auto interpreter = join_path(state.decision.right, state.python.empty() ? "bin/python" : state.python);
  if (interpreter.size() + 2 > k_first_line_limit)
    say(Severity::warning, "SF524",
        fmt::format("with {} the first line of a script is longer than the {} bytes that a kernel reads",
                    state.decision.right, k_first_line_limit),
        "scripts of other programs than Python then need the environment to be active (`#!/usr/bin/env`); a shorter "
        "`conda.store` avoids it");
  std::vector<std::string> closed;
  for (const auto& one : state.found)
    if (one.kind == Kind::closed)
      closed.push_back(one.path);
  const auto paths = count_of(closed.size(), "path");
  if (!closed.empty() && state.others_write)
    say(Severity::error, "SF532",
        fmt::format("{} that not everybody can read, where others could have put private files of its owner: {}", paths,
                    first_of(closed)),
        "see what they are: take out what is private, open what is meant (`chmod go+rX PATH`)");
  else if (!closed.empty())
    say(Severity::info, "SF525",
        fmt::format("{} that only the owner can read can be read by all users of the store", paths), "");
  return found;
}

} // namespace sharefs::conda
