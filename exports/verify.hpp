#pragma once
// Verifies after a change that the desired exports are in force. The exit code of exportfs does not show that, because
// exportfs drops hosts without an error; etab and the server's list do. Pure.
#include "base/diagnosis.hpp"
#include "exports/plan_export.hpp"
#include "sys/nfs/nfs_probe.hpp"

#include <vector>

namespace sharefs::exports {

/// Compares the etab with the expected one: the own exports client by client (SF130, SF131), exports that should be
/// gone (SF134), and exports of other files that are not as expected (SF133, a warning, since undoing this change does
/// not cure that).
Diagnoses verify_etab(const Composed& composed, const HostFacts& facts, const std::vector<Export>& etab);

/// SF132: compares the directories of the own exports with the list that the server gives over the network. A server
/// that offers only NFS version 4 has no list; then only a failed stage of the probe is reported.
Diagnoses verify_listing(const Composed& composed, const HostFacts& facts, const sys::NfsProbe& probe);

} // namespace sharefs::exports
