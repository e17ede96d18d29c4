#pragma once
// Inside of diagnose(): one function per kind of question.
#include "exports/diagnose.hpp"

#include <string>
#include <vector>

namespace sharefs::exports {

void diagnose_client(const Export& entry, Diagnoses& diagnoses); ///< its name
void diagnose_rights(const Export& entry, Diagnoses& diagnoses); ///< its options
/// `line`: the clients of one directory.
void diagnose_directory(std::span<const Export> line, const HostFacts& facts, Diagnoses& diagnoses);
/// Rights that clients get or lose by other entries than the one that names them: by that of a host that exportfs takes
/// for theirs, or of a directory above; and lines of etab that mountd cannot read.
void diagnose_reach(const std::vector<ExportsFile>& files, const ExpectedEtab& expected, const HostFacts& facts,
                    std::map<std::string, Diagnoses>& by_file);
/// exportfs' own words about a line of which nothing was said in ours, and entries that it does not export although
/// their text looks right: mostly hosts that do not resolve. Where it was not asked, options that it may not know.
void diagnose_answer(const std::vector<ExportsFile>& files, const ExpectedEtab& expected,
                     std::map<std::string, Diagnoses>& by_file);
/// Duplicates, and one fsid for two directories.
void diagnose_together(const ExpectedEtab& expected, std::map<std::string, Diagnoses>& by_file);

} // namespace sharefs::exports
