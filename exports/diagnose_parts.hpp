#pragma once
// Inside of diagnose(): one function per kind of question.
#include "exports/diagnose.hpp"

#include <string>
#include <vector>

namespace sharefs::exports {

void diagnose_client(const Export& entry, const HostFacts& facts, Diagnoses& diagnoses); ///< its name
void diagnose_rights(const Export& entry, const HostFacts& facts, Diagnoses& diagnoses); ///< its options
/// `line`: the clients of one directory.
void diagnose_directory(std::span<const Export> line, const HostFacts& facts, Diagnoses& diagnoses);
/// Duplicates, overlaps, and one fsid for two directories.
void diagnose_together(const ExpectedEtab& expected, std::map<std::string, Diagnoses>& by_file);

} // namespace sharefs::exports
