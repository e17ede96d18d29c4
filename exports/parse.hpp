#pragma once
// Converts between exports(5) text and values. parse() accepts what exportfs accepts, and reports what exportfs would
// lose without a message.
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
  std::vector<Export> exports; ///< in order, without the entries that have an error themselves
  /// The number of `exports` that exportfs reads: it stops at the first syntax error or bad option. The entries after
  /// the error are kept so that they can be named and checked.
  std::size_t taken = 0;
  bool complete = true;     ///< false: exportfs stops in the middle
  Diagnoses diagnoses;      ///< of the syntax and the options, with places
  std::string text;         ///< with which exportfs is asked
  std::string refused = {}; ///< the option at which exportfs has stopped reading

  [[nodiscard]] std::span<const Export> read() const { return std::span(exports).first(taken); }
  [[nodiscard]] std::span<const Export> lost() const { return std::span(exports).subspan(taken); }
};

/// Never fails: faults are reported in `diagnoses`. `name` is used in messages only. `refused`: an option that exportfs
/// has refused, because only exportfs knows which values and options it takes.
ExportsFile parse(std::string_view text, const std::string& name, const std::string& refused = {});

/// SF111: reports the entries that stand after the error at which exportfs stopped reading their file.
Diagnosis lost_entries(std::span<const Export> lost);

/// Returns text from which parse() makes the same exports (except for their origins). Clients of one line stay on one
/// line. Precondition: unwritable() is empty for each export.
std::string format(const std::vector<Export>& exports);
/// Returns the reason why the grammar cannot express the entry ("a client cannot be empty"); empty if it can.
std::string unwritable(const Export& entry);

} // namespace sharefs::exports
