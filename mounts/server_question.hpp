#pragma once
// Asks an NFS server what it answers to this host, and whether one of its exports can be mounted.
#include "base/diagnosis.hpp"
#include "plan/say.hpp"
#include "sys/system.hpp"

#include <string>

namespace sharefs::mounts {

struct ServerQuestion {
  std::string name; ///< the server or export for messages
  sys::NfsProbeRequest request;
  bool until_ready = false; ///< ask again until it can be mounted
};

struct ServerReply {
  sys::NfsProbe probe;
  Diagnoses diagnoses; ///< the failing stage with cause and cure, or why the path cannot be mounted
  bool ready = false;
};

/// Asks a server. With `until_ready` it waits without a limit, and reports each new reason once, for the log at boot.
ServerReply ask_server(sys::System& system, const ServerQuestion& question, const plan::Say& say);

} // namespace sharefs::mounts
