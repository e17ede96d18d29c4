#pragma once
// Inside of diagnose(): one function per kind of question.
#include "exports/diagnose.hpp"

#include <string>
#include <vector>

namespace sharefs::exports {

/// A diagnosis of the place `origin`.
Diagnosis at(Severity severity, std::string code, const Origin& origin, std::string message, std::string hint = {});

void diagnose_client(const Client& client, const HostFacts& facts, Diagnoses& diagnoses); ///< its name
void diagnose_rights(const Client& client, const HostFacts& facts, Diagnoses& diagnoses); ///< its options
void diagnose_directory(const Export& entry, const HostFacts& facts, Diagnoses& diagnoses);
/// Duplicates, overlaps, and one fsid for two directories.
void diagnose_together(const std::vector<ExportsFile>& files, const HostFacts& facts, Diagnoses& diagnoses);

} // namespace sharefs::exports
