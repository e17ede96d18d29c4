#pragma once
// Finds what is wrong with exports and returns it as diagnoses SF101-SF158 (docs/diagnoses/exports.md). Pure.
#include "exports/facts.hpp"

#include <string>
#include <vector>

namespace sharefs::exports {

/// `files` stand in the order in which exportfs reads them; `expected` is what exportfs makes of them. The result
/// includes the diagnoses of parse() and is sorted by file and place.
Diagnoses diagnose(const std::vector<ExportsFile>& files, const ExpectedEtab& expected, const HostFacts& facts);

/// Checks an entry of sharefs.yaml, which parse() has not seen: what exports(5) cannot express, unknown options, the
/// one that exportfs has refused.
Diagnoses diagnose_entry(const Export& entry, const std::string& refused = {});

/// SF145, SF147, SF149: checks every export that is in force, whichever file it comes from.
Diagnoses diagnose_in_force(const std::vector<Export>& etab, const sys::MountTable& mounts);

// The parts of diagnose(): one function for each kind of fault.

Diagnoses diagnose_client(const Export& entry); ///< the client's name
Diagnoses diagnose_rights(const Export& entry); ///< the client's options
/// Reports rights that others than the client get, or that it loses, because exportfs takes it for another host, which
/// stands in etab.
Diagnoses diagnose_mistaken(const Export& entry, const Export& in_etab, const HostFacts& facts);
/// Reports rights that a client gets by the entry of a directory above, and lines of etab that mountd cannot read.
void diagnose_reach(const ExpectedEtab& expected, const HostFacts& facts, std::map<std::string, Diagnoses>& by_file);
/// Reports the messages of exportfs about lines for which sharefs has no diagnosis of its own, names that no client
/// has, and entries that exportfs does not export although their text looks right (mostly hosts that do not resolve).
/// Where exportfs was not asked, reports options that it may not know.
void diagnose_answer(const std::vector<ExportsFile>& files, const ExpectedEtab& expected,
                     std::map<std::string, Diagnoses>& by_file);

} // namespace sharefs::exports
