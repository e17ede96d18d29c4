#pragma once
// Private to fs: reads one path, in this process or in a child.
#include "sys/fs/entry.hpp"
#include "sys/process/wire.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace sharefs::sys {

/// Reads `query.path`, seen from `root`. Returns an unknown entry with EREMOTE if a mount of `stop_at` is reached.
/// `begin_step`, if given, is called with the name of each system call that may hang, before the call.
Entry read_entry(int root, const EntryQuery& query, const MountTargets& stop_at,
                 const std::function<void(std::string_view)>& begin_step);

template <FieldsOf<Space> S> auto fields(S& s) {
  return named("latency", s.latency, "size_bytes", s.size_bytes, "free_bytes", s.free_bytes, "files", s.files,
               "free_files", s.free_files);
}
template <FieldsOf<TestFile> T> auto fields(T& t) {
  return named("uid", t.uid, "ahead", t.ahead);
}
template <FieldsOf<Note> N> auto fields(N& n) {
  return named("above", n.above, "directory", n.directory, "name", n.name);
}
template <FieldsOf<EntryQuery> Q> auto fields(Q& q) {
  return named("path", q.path, "follow", q.follow, "list", q.list, "read_bytes", q.read_bytes, "space", q.space,
               "access", q.access, "write_test", q.write_test, "note", q.note, "fresh", q.fresh, "automount",
               q.automount, "links", q.links, "guarded", q.guarded, "acl", q.acl);
}
template <FieldsOf<Entry> E> auto fields(E& e) {
  return named("path", e.path, "resolved", e.resolved, "ancestor", e.ancestor, "kind", e.kind, "error_number",
               e.error_number, "detail", e.detail, "link_target", e.link_target, "mode", e.mode, "withheld", e.withheld,
               "uid", e.uid, "gid", e.gid, "size", e.size, "device", e.device, "inode", e.inode, "links", e.links,
               "allocated", e.allocated, "mtime", e.mtime, "mtime_ns", e.mtime_ns, "writable", e.writable, "names",
               e.names, "content", e.content, "space", e.space, "made", e.made);
}

} // namespace sharefs::sys
