#pragma once
// Finds what is wrong with exports and returns it as diagnoses SF101-SF158 (docs/diagnoses/exports.md). Pure.
#include "exports/facts.hpp"

#include <vector>

namespace sharefs::exports {

/// `files` stand in the order in which exportfs reads them; `expected` is what exportfs makes of them. The result
/// includes the diagnoses of parse() and is sorted by file and place.
Diagnoses diagnose(const std::vector<ExportsFile>& files, const ExpectedEtab& expected, const HostFacts& facts);

/// Checks an entry of sharefs.yaml, which parse() has not seen: what exports(5) cannot express, unknown options, wrong
/// values.
Diagnoses diagnose_entry(const Export& entry);

/// SF145, SF147, SF149: checks every export that is in force, whichever file it comes from.
Diagnoses diagnose_in_force(const std::vector<Export>& etab, const sys::MountTable& mounts);

} // namespace sharefs::exports
