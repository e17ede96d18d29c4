#include "tree/survey.hpp"

#include "base/path.hpp"
#include "base/try.hpp"
#include "sys/fs/sha256.hpp"
#include "tree/job.hpp"
#include "tree/pack.hpp"

#include <cerrno>
#include <fmt/format.h>

namespace sharefs::tree {

Result<Survey> survey(const Place& place, const Options& options, const OnProgress& progress, bool inodes,
                      const std::string& without) {
  const auto is_left_out = [inside = "/" + without + "/"](const Entry& entry) {
    return ("/" + entry.path + "/").find(inside) != std::string::npos;
  };
  return watched(place.path, options, progress, [&](const sys::ProgressCounters& counters) -> Result<Survey> {
    TRY_ASSIGN(const auto reader, Reader::open(place, counters));
    TRY_ASSIGN(auto entries, reader.list());
    if (!without.empty())
      std::erase_if(entries, is_left_out);
    if (!inodes) // inodes are only requested for generations, which sharefs has made without delegations
      reader.recall_delegations(entries);
    Survey found;
    sys::Sha256 hash;
    for (const auto& entry : entries) {
      if (entry.error_number != 0)
        return fail(errno_error(entry.error_number, join_path(place.path, entry.path)));
      const bool is_file = S_ISREG(entry.mode);
      found.files += S_ISDIR(entry.mode) ? 0 : 1;
      found.bytes += is_file ? entry.size : 0;
      // The time of a directory is not used: it shows only that its entries have changed, and they are hashed
      // themselves.
      hash.add(fmt::format("{:o} {}:{} {} {}.{} {} {} {}\n{}\n{}\n", entry.mode, entry.uid, entry.gid,
                           is_file ? entry.size : 0, is_file ? entry.mtime : 0, is_file ? entry.mtime_ns : 0,
                           inodes ? entry.inode : 0, entry.path.size(), entry.target.size(), entry.path, entry.target));
    }
    found.fingerprint = hash.hex();
    return found;
  });
}

Result<Listing> list_contents(const Place& place, const Options& options, const OnProgress& progress) {
  return watched(place.path, options, progress, [&](const sys::ProgressCounters& counters) -> Result<Listing> {
    TRY_ASSIGN(auto reader, Reader::open(place, counters));
    TRY_ASSIGN(const auto entries, list_packable(reader, place));
    const auto& top = reader.status();
    Listing listing{.uid = top.st_uid, .gid = top.st_gid, .entries = {{.path = "", .mode = top.st_mode}}};
    for (const auto& entry : entries) {
      auto& listed = listing.entries.emplace_back(
          Listed{.path = entry.path, .target = entry.target, .mode = entry.mode, .mtime = entry.mtime});
      if (!S_ISREG(entry.mode))
        continue;
      sys::Sha256 hash;
      const int error = reader.read(
          entry.path,
          [&](std::string_view piece) {
            hash.add(piece);
            listed.bytes += piece.size();
            counters.add(k_bytes, piece.size());
            return true;
          },
          &entry);
      const auto path = join_path(place.path, entry.path);
      if (error == ESTALE || (error == 0 && listed.bytes != entry.size))
        return fail(ErrorCode::conflict, path + " changed while it was read",
                    "run the command again when nobody writes there");
      if (error != 0)
        return fail(errno_error(error, path));
      listed.sha256 = hash.hex();
    }
    return listing;
  });
}

Result<FileContent> read_content(const Place& file, const Options& options, const OnProgress& progress) {
  return watched(file.path, options, progress, [&](const sys::ProgressCounters& counters) -> Result<FileContent> {
    TRY_ASSIGN(const auto open, open_file(file));
    return hash_file(open.get(), file.path, counters, k_bytes);
  });
}

} // namespace sharefs::tree
