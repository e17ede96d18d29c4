#pragma once
// What is worth saying about exports: pure, from values to diagnoses SF101-SF158 (docs/diagnoses/exports.md).
#include "exports/facts.hpp"

#include <vector>

namespace sharefs::exports {

/// Files in the order in which exportfs reads them, and what it makes of them; what parse() found is part of the
/// answer. Sorted by file and place.
Diagnoses diagnose(const std::vector<ExportsFile>& files, const ExpectedEtab& expected, const HostFacts& facts);

/// Of an entry that was never text (sharefs.yaml): what exports(5) cannot express, unknown options, wrong values.
Diagnoses diagnose_entry(const Export& entry);

/// SF145, SF147: what etab has in force for everybody, whoever wrote it.
Diagnoses diagnose_in_force(const std::vector<Export>& etab, const sys::MountTable& mounts);

} // namespace sharefs::exports
