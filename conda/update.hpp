#pragma once
// A command changes a shared environment: it works in a view of the present generation that only it sees, or in a full
// copy where there is no such view, and what it leaves becomes the next generation.
#include "conda/guard_wheel.hpp"
#include "conda/make_generation.hpp"

namespace sharefs::conda {

struct UpdateRequest {
  std::string store, name;
  Argv command;
  std::vector<std::string> environment; ///< NAME=value, of who runs it
  std::string working_directory;
  bool output_to_stderr = false; ///< on standard output comes something else
  int user_namespace = -1;       ///< see sys::Layers
  std::string scratch;           ///< directory on this host's own disk for what the command writes
  bool protect = true;           ///< the generation gets no write bits
  bool verify = true;            ///< what the command left is compared with conda's records
  GuardFiles guard;              ///< that are added, unless somebody has taken them away
  std::string message;           ///< for the record
  LeaseWish lease;
  ImageWish image;
};

/// Errors: `failed`: the command has failed, or what it left is not sound; `permission`: root would run programs that
/// others could replace; `interrupted`.
Result<NewGeneration> update(sys::System& system, const UpdateRequest& request, const plan::Say& say);

} // namespace sharefs::conda
