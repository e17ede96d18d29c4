#pragma once
// exportfs(8) is asked what it makes of exports files: it runs on them in namespaces of its own, and the etab that it
// writes there is read. Nothing of the host changes.
#include "exports/facts.hpp"
#include "sys/system.hpp"

#include <functional>
#include <vector>

namespace sharefs::exports {

enum class Scope {
  host, ///< files of the host, of which some have another text
  given ///< these files alone, each with its text, as if they were those of the host; all names resolve
};

/// Where exportfs cannot be asked (it is not installed, there are no namespaces, it does not end), what_the_text_says()
/// and the reason. `facts`: the addresses of names are from there, since the namespace has no network; one that is not
/// in there is taken to resolve. Its directories say which line of etab is whose.
ExpectedEtab ask_exportfs(sys::System& system, const std::vector<ExportsFile>& files, const HostFacts& facts,
                          Scope scope);

/// What is certain from the text: the first entry for a directory and client counts, and clients that can be none are
/// dropped.
ExpectedEtab what_the_text_says(const std::vector<ExportsFile>& files, const HostFacts& facts);

/// The etab that exportfs wrote, and what it complained of -> entries with the places of `files`. Pure.
ExpectedEtab read_answer(std::string_view etab, const std::vector<ExportsFile>& files, const HostFacts& facts,
                         std::vector<Complaint> complaints = {});

/// As ask_exportfs(), for what a plan is made from; what_the_text_says() where a test has no exportfs.
using Ask = std::function<ExpectedEtab(const std::vector<ExportsFile>& files, const HostFacts& facts)>;

} // namespace sharefs::exports
