#pragma once
// A command changes a shared environment: it works in a view of the present generation that only it sees, or in a full
// copy where there is no such view, and its result becomes the next generation.
#include "conda/make_generation.hpp"
#include "sys/layers/layered_command.hpp"

namespace sharefs::conda {

struct UpdateRequest {
  std::string store, name;
  sys::TerminalCommand command; ///< with the environment of the user who runs it
  int user_namespace = -1;      ///< see sys::Layers
  std::string scratch;          ///< directory on this host's own disk for the files that the command writes
  bool verify = true;           ///< the result of the command is compared with conda's records
  std::string message;          ///< for the record
  GenerationSettings settings;
};

/// Makes the next generation by the command. Errors: `failed`: the command has failed, or its result is not sound;
/// `permission`: root would run programs that others could replace; `interrupted`.
Result<NewGeneration> update(sys::System& system, const UpdateRequest& request, const plan::Say& say);

} // namespace sharefs::conda
