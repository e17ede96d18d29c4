#pragma once
// After the plan: is exported what was wanted? exportfs' exit code does not say (it drops hosts silently), etab and
// the network do. Pure.
#include "base/diagnosis.hpp"
#include "exports/plan_export.hpp"
#include "sys/nfs/nfs_probe.hpp"

#include <vector>

namespace sharefs::exports {

/// What exportfs was expected to make of the files against the etab that it made: own exports client by client (SF130,
/// SF131), what should have gone (SF134), and exports of others that are not as they were expected (SF133, a warning,
/// since taking our own change back does not cure it).
Diagnoses verify_etab(const Composed& composed, const HostFacts& facts, const std::vector<Export>& etab);

/// The directories of own exports against the list that the server gives over the network: SF132. A server for NFS
/// version 4 only has no list; then what it says itself has to be enough.
Diagnoses verify_listing(const Composed& composed, const HostFacts& facts, const sys::NfsProbe& probe);

} // namespace sharefs::exports
