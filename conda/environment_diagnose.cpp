#include "conda/environment.hpp"

#include "base/text.hpp"
#include "base/visible.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::conda {

namespace {

/// The diagnosis of all paths of a kind. In the message `%` stands for their number and noun ("3 files").
struct KindText {
  Kind kind;
  const char* name;
  Severity severity;
  std::string_view code, noun, message, hint;
  bool repaired;
};
constexpr std::string_view k_repair = "`sharefs conda verify ENV --repair` corrects it";
constexpr std::array<KindText, 20> k_texts{{
    {Kind::missing, "missing", Severity::error, "SF501", "file", "% of conda's packages missing",
     "install their packages again: `conda install --force-reinstall NAME`", false},
    {Kind::altered, "altered", Severity::error, "SF502", "file", "% not as conda's packages have them",
     "if nobody changed them on purpose, pip has overwritten them: install the package again with one of the two",
     false},
    {Kind::bad_record, "bad_record", Severity::error, "SF503", "record", "% of conda-meta cannot be used",
     "what its package has brought cannot be checked: install the package again", false},
    {Kind::unreadable, "unreadable", Severity::error, "SF504", "path", "% cannot be read",
     "run it as the owner of the environment, or as root where the server lets root read", false},
    {Kind::changing, "changing", Severity::warning, "SF505", "file", "% changed while being read",
     "somebody works in the environment: run it again later", false},
    {Kind::old_prefix, "old_prefix", Severity::error, "SF506", "path", "% with the prefix of another place", k_repair,
     true},
    {Kind::second_prefix, "second_prefix", Severity::warning, "SF507", "path",
     "% with another path of the same directory as prefix", k_repair, true},
    {Kind::other_prefix, "other_prefix", Severity::warning, "SF508", "file", "% with the prefix of another environment",
     "if it is not meant: `--repair --from PREFIX` replaces it", false},
    {Kind::no_room, "no_room", Severity::error, "SF509", "file", "% with a prefix that cannot be replaced",
     "choose a prefix that is not longer, or install its package again", false},
    {Kind::closed, "closed", Severity::error, "SF510", "path",
     "% that not everybody can read who may enter the environment", k_repair, true},
    {Kind::stale_pyc, "stale_pyc", Severity::warning, "SF511", "compiled file",
     "% not of the source beside them: every process compiles anew", k_repair, true},
    {Kind::old_checksum, "old_checksum", Severity::warning, "SF512", "file",
     "% right, but their records have the checksums of another prefix", k_repair, true},
    {Kind::outside_link, "outside_link", Severity::warning, "SF513", "link", "% out of the environment",
     "what they lead to is not copied or shared with the environment", false},
    {Kind::editable, "editable", Severity::warning, "SF514", "file",
     "% of editable installs: code outside of the environment",
     "install the project itself: `pip install .` without `-e`", false},
    {Kind::set_id, "set_id", Severity::warning, "SF515", "file", "% with set-id bits",
     "nothing in an environment needs them: `chmod ug-s`", false},
    {Kind::special, "special", Severity::warning, "SF530", "path", "% no file: FIFOs, sockets or devices",
     "nothing in an environment needs them, and they are not copied: delete them (`rm`)", false},
    {Kind::foreign, "foreign", Severity::warning, "SF531", "path",
     "% of another user than the owner of the environment",
     "see whose they are and why they lie there; take them out, or give to the owner what is meant to be in it (`chown "
     "-h`): they are not shared, nor changed by `--repair`",
     false},
    {Kind::nobody, "nobody", Severity::warning, "SF516", "path", "% of nobody: the owner is not known here",
     "make ids the same on server and clients (`sharefs status`)", false},
    {Kind::nfs_leftover, "nfs_leftover", Severity::info, "SF517", "file",
     "% deleted, but still open on some host (.nfs*)", "they go away with the processes that use them", false},
    {Kind::unmanaged, "unmanaged", Severity::info, "SF518", "file", "% of no package of conda (pip, or by hand)", "",
     false},
}};

const KindText& text_of(Kind kind) {
  return k_texts[std::min(static_cast<std::size_t>(kind), k_texts.size() - 1)];
}

} // namespace

std::string first_of(const std::vector<std::string>& names) {
  constexpr std::size_t k_named = 3;
  std::vector<std::string> first;
  for (std::size_t i = 0; i < std::min(names.size(), k_named); ++i)
    first.push_back(visible(names[i]));
  const auto text = join(first, ", ");
  return names.size() <= k_named ? text : fmt::format("{} and {} more", text, names.size() - k_named);
}

const char* to_string(Kind kind) {
  return text_of(kind).name;
}

Diagnoses diagnose_unrepaired(const EnvironmentState& state) {
  auto rest = state;
  std::erase_if(rest.found, [&](const Found& found) {
    // Closed files with several names or of other owners have no change in `modes`: they stay closed.
    return text_of(found.kind).repaired &&
           (found.kind != Kind::closed ||
            std::ranges::binary_search(state.modes, found.path, {}, &plan::FileChange::path));
  });
  return diagnose(rest);
}

std::size_t EnvironmentState::count(Kind kind) const {
  return static_cast<std::size_t>(std::ranges::count(found, kind, &Found::kind));
}

Diagnoses diagnose(const EnvironmentState& state) {
  Diagnoses diagnoses;
  for (const auto& text : k_texts) {
    std::vector<std::string> found;
    for (const auto& one : state.found)
      if (one.kind == text.kind)
        found.push_back(one.path + (one.detail.empty() ? "" : " (" + one.detail + ")"));
    if (found.empty())
      continue;
    std::string message(text.message);
    message.replace(message.find('%'), 1, count_of(found.size(), text.noun));
    if (text.kind != Kind::unmanaged)
      message += ": " + first_of(found);
    std::string hint(text.hint);
    if (text.repaired)
      hint.replace(hint.find("ENV"), 3, shell_quote(state.path));
    for (const std::string tool : {"`conda install", "`pip install"}) // a generation is changed by an update only
      if (const auto at = hint.find(tool); at != std::string::npos && !state.shared.empty())
        hint.insert(at + 1, "sharefs conda update " + shell_quote(state.shared) + " -- ");
    diagnoses.push_back({text.severity, std::string(text.code), state.path, std::move(message), std::move(hint), ""});
  }
  if (state.packages == 0 && state.count(Kind::unmanaged) > 0)
    diagnoses.push_back({Severity::warning, "SF503", state.path,
                         "conda-meta has no record of a package: nothing can be compared",
                         "if conda made it, its records are lost: install the packages again", ""});
  if (!state.closed_above.empty())
    diagnoses.push_back({Severity::warning, "SF308", state.closed_above,
                         "it lets nobody but its owner through: no other user can run the environment below it",
                         "if others should: `chmod go+x " + shell_quote(state.closed_above) + "`", ""});
  return diagnoses;
}

} // namespace sharefs::conda
