#pragma once
// Inside of diagnose(): one function per kind of question.
#include "exports/diagnose.hpp"

#include <string>
#include <vector>

namespace sharefs::exports {

void diagnose_client(const Export& entry, const HostFacts& facts, Diagnoses& diagnoses); ///< its name
void diagnose_rights(const Export& entry, Diagnoses& diagnoses);                         ///< its options
/// `line`: the clients of one directory.
void diagnose_directory(std::span<const Export> line, const HostFacts& facts, Diagnoses& diagnoses);
/// What clients get by other entries than the one that names them: of a host that exportfs takes for another, of a
/// directory above, and of lines of etab that mountd cannot read.
void diagnose_reach(const std::vector<ExportsFile>& files, const ExpectedEtab& expected, const HostFacts& facts,
                    std::map<std::string, Diagnoses>& by_file);
/// What exportfs says about a line that nothing else was said about, and what it exports or does not, against the text.
void diagnose_answer(const std::vector<ExportsFile>& files, const ExpectedEtab& expected,
                     std::map<std::string, Diagnoses>& by_file);
/// Duplicates, and one fsid for two directories.
void diagnose_together(const ExpectedEtab& expected, std::map<std::string, Diagnoses>& by_file);

} // namespace sharefs::exports
