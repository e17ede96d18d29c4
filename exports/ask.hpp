#pragma once
// Asks exportfs(8) what it makes of exports files: exportfs runs on them in namespaces of its own, and the etab that it
// writes there is read. Nothing on the host changes.
#include "exports/facts.hpp"
#include "sys/system.hpp"

#include <functional>
#include <vector>

namespace sharefs::exports {

enum class Scope {
  host, ///< the files, and what else lies in their places on the host
  given ///< only the given files, each with its text, in place of the host's files; all names resolve
};

/// Returns what exportfs makes of the files. Where exportfs cannot be asked (it is not installed, there are no
/// namespaces, it does not end), returns predict_from_text() with the reason in `not_asked`. The addresses of host
/// names are taken from `facts`, since the namespace has no network; a name that `facts` does not have counts as
/// resolved. The directories of `facts` decide which entry a line of etab belongs to. A file that exportfs stops
/// reading at an option is parsed again, up to that option; where it was not made of its text, it gets `refused`.
ExpectedEtab ask_exportfs(sys::System& system, std::vector<ExportsFile>& files, const HostFacts& facts, Scope scope);

/// Returns the part that is certain from the text alone: the first entry for a directory and client counts, and names
/// that cannot be a client are dropped.
ExpectedEtab predict_from_text(const std::vector<ExportsFile>& files, const HostFacts& facts);

/// Turns the etab and the complaints of exportfs into entries with their places in `files`. Pure.
ExpectedEtab read_answer(std::string_view etab, const std::vector<ExportsFile>& files, const HostFacts& facts,
                         std::vector<Complaint> complaints = {});

/// The question by which compose() gets the expected etab: ask_exportfs(), or predict_from_text() in a test that has
/// no exportfs.
using Ask = std::function<ExpectedEtab(std::vector<ExportsFile>& files, const HostFacts& facts)>;

} // namespace sharefs::exports
