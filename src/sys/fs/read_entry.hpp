#pragma once
// Private to fs: one look at one path, in this process or in a child.
#include "sys/fs/entry.hpp"
#include "sys/process/wire.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace sharefs::sys {

/// What lies at `query.path`, seen from `root`. An unknown entry with EREMOTE where a mount of `stop_at` is reached.
/// `begin_step`, if given, is called before each system call that may hang, with its name.
Entry read_entry(int root, const EntryQuery& query, const MountTargets& stop_at,
                 const std::function<void(std::string_view)>& begin_step);

template <WireOf<Space> S> auto wire_fields(S& s) {
  return std::tie(s.latency, s.size_bytes, s.free_bytes, s.files, s.free_files);
}
template <WireOf<TestFile> T> auto wire_fields(T& t) {
  return std::tie(t.uid, t.ahead);
}
template <WireOf<Entry> E> auto wire_fields(E& e) {
  return std::tie(e.path, e.resolved, e.ancestor, e.kind, e.error_number, e.detail, e.link_target, e.mode, e.uid, e.gid,
                  e.size, e.device, e.inode, e.links, e.mtime, e.writable, e.names, e.content, e.space, e.made);
}

} // namespace sharefs::sys
