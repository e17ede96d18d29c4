#pragma once
// What an NFS server answers to this host, and whether it, or one of its exports, can be mounted.
#include "base/diagnosis.hpp"
#include "plan/say.hpp"
#include "sys/system.hpp"

#include <string>

namespace sharefs::mounts {

struct ServerQuestion {
  std::string name; ///< as a person calls the server or the export
  sys::NfsProbeRequest request;
  bool until_ready = false; ///< asked again until it can be mounted
};

struct ServerReply {
  sys::NfsProbe probe;
  Diagnoses diagnoses; ///< the failing stage with cause and cure, or what forbids to mount the path that was asked for
  bool ready = false;
};

/// With `until_ready` it takes as long as it takes, and says each reason to wait once: at boot it stands in the log.
ServerReply ask_server(sys::System& system, const ServerQuestion& question, const plan::Say& say);

} // namespace sharefs::mounts
