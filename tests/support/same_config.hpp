#pragma once
#include "config/config.hpp"

namespace sharefs::test {

/// The configuration without the places where its values were written: what two files can have in common.
inline config::Config without_origins(config::Config config) {
  config.file.clear();
  for (auto& server : config.servers) {
    server.origin = {};
    for (auto& item : server.exports) {
      item.origin = {};
      for (auto& client : item.clients)
        client.origin = {};
    }
  }
  for (auto& mount : config.mounts) {
    mount.origin = {};
    for (auto& share : mount.shares)
      share.origin = {};
  }
  if (config.conda) {
    config.conda->origin = {};
    for (auto& place : config.conda->homes)
      place.origin = {};
    for (auto& one : config.conda->envs)
      one.origin = {};
  }
  if (config.watch)
    config.watch->origin = {};
  for (auto& rule : config.caches.rules)
    rule.origin = {};
  for (auto& listed : config.nodes.list)
    listed.origin = {};
  for (auto& group : config.nodes.groups)
    group.origin = {};
  for (auto& mirror : config.mirrors)
    mirror.origin = {};
  return config;
}

} // namespace sharefs::test
