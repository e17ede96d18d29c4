#pragma once
// After the plan: is exported what was wanted? exportfs' exit code does not say (it drops hosts silently), etab and
// the network do. Pure.
#include "base/diagnosis.hpp"
#include "exports/plan_export.hpp"
#include "sys/nfs/nfs_probe.hpp"

#include <vector>

namespace sharefs::exports {

/// Own exports against etab, client by client (SF130, SF131), and what should have gone (SF134).
Diagnoses verify_etab(const Composed& composed, const Actual& actual, const std::vector<Export>& etab);

/// Entries of others that were in etab before (`actual`) and are not any more, or differently: SF133, a warning, since
/// taking our own change back does not cure it.
Diagnoses verify_foreign(const Composed& composed, const Actual& actual, const std::vector<Export>& etab);

/// The directories of own exports against the list that the server gives over the network: SF132. A server for NFS
/// version 4 only has no list; then what it says itself has to be enough.
Diagnoses verify_listing(const Composed& composed, const HostFacts& facts, const sys::NfsProbe& probe);

} // namespace sharefs::exports
