#pragma once
// Text of exports(5) <-> values. parse() takes what exportfs takes, and reports what exportfs would silently lose.
#include "base/diagnosis.hpp"
#include "exports/export.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::exports {

/// One exports file as exportfs(8) reads it (getexportent in support/nfs/exports.c).
struct ExportsFile {
  std::string name;
  std::vector<Export> exports; ///< in order; an entry that is wrong itself is no part of it
  /// How many of them it takes: exportfs gives up a file at its first syntax error or bad option. Those behind it are
  /// there to be named and checked, too.
  std::size_t taken = 0;
  bool complete = true;                 ///< false: exportfs stops in the middle
  Diagnoses diagnoses;                  ///< of the syntax and the options, with places
  std::optional<std::string> text = {}; ///< what is to stand in the file; nullopt: what the host has
  /// Options that not every nfs-utils knows, with their places.
  std::vector<std::pair<std::string, Origin>> newer = {};

  [[nodiscard]] std::span<const Export> read() const { return std::span(exports).first(taken); }
  [[nodiscard]] std::span<const Export> lost() const { return std::span(exports).subspan(taken); }
};

/// Never fails: what is wrong stands in `diagnoses`. `name` is only for messages.
ExportsFile parse(std::string_view text, const std::string& name);

/// SF111: entries that stand behind the error at which exportfs gave up their file.
Diagnosis lost_entries(std::span<const Export> lost);

/// Text that parse() reads back as the same exports (origins apart). Clients of one line stay on one line unless their
/// defaults differ. Precondition: unwritable() is empty for each.
std::string format(const std::vector<Export>& exports);
/// Why the grammar cannot express it ("a client cannot hold `(`"); empty: it can.
std::string unwritable(const Export& entry);

} // namespace sharefs::exports
