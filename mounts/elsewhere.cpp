#include "mounts/elsewhere.hpp"

#include "base/text.hpp"
#include "mounts/verify.hpp"
#include "sys/process/interrupt.hpp"
#include "sys/process/remote.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <set>
#include <tuple>

namespace sharefs::mounts {

namespace {

/// One host, asked about one mount after the other, until it cannot be asked.
class Other {
 public:
  Other(sys::System& system, std::string host) : m_system(system), m_host(std::move(host)) {}

  Result<RemoteView> ask(const RemoteQuestion& question, const std::optional<sys::User>& as) {
    if (m_failed)
      return fail(*m_failed);
    const auto answer = sys::ask_remote(m_system, {.host = m_host, .script = remote_script(question), .as = as});
    if (!answer) {
      m_failed = answer.error();
      return fail(answer.error());
    }
    return parse_remote_view(*answer);
  }
  [[nodiscard]] const std::string& host() const { return m_host; }

 private:
  sys::System& m_system;
  std::string m_host;
  std::optional<Error> m_failed;
};

/// What the two hosts said about one mount.
struct Seen {
  sys::HeldLocks held;
  std::optional<Result<RemoteView>> while_held, after, server;
};

Diagnosis untried(const MountPoint& point, std::string_view what, const std::string& host, const std::string& why,
                  std::string hint) {
  return about(point, Severity::warning, "SF240", fmt::format("{} {}: {}", what, host, why), std::move(hint));
}

std::string ssh_hint(const std::string& host) {
  return fmt::format("try `ssh -o BatchMode=yes {} true` as root of this host: it must ask for nothing", host);
}

/// How far `said` lies outside of the time in which it was said.
std::chrono::seconds ahead_of(std::int64_t said, std::int64_t asked, std::int64_t answered) {
  return std::chrono::seconds(said < asked ? said - asked : said > answered ? said - answered : 0);
}

bool is_local_only(const std::string& options) {
  return options.find("local_lock=") != std::string::npos && options.find("local_lock=none") == std::string::npos;
}

/// Why a lock does not exclude, and the cure.
Diagnosis open_locks(const MountPoint& point, const std::string& node, const std::string& kinds,
                     const std::string& options_here, const std::string& options_there) {
  const bool here = is_local_only(options_here), there = is_local_only(options_there);
  const auto cause =
      here || there ? fmt::format("they are local to each node, by nolock or local_lock on {}", here && there ? "both"
                                                                                                : here ? "this host"
                                                                                                       : node)
                    : std::string("neither host mounts it with nolock, so the server does not keep them");
  return about(point, Severity::error, "SF239", fmt::format("locks do not exclude {} ({}): {}", node, kinds, cause),
               here || there ? "mount it with `profile: safe`, or without `nolock` and `local_lock`, on all nodes"
                             : "see if it is one server, and the same share, on both hosts");
}

class Judge {
 public:
  Judge(const MountPoint& point, Elsewhere& result, Diagnoses& found)
      : m_point(point), m_result(result), m_found(found) {}

  /// Locks that this host itself does not get.
  bool refused(const sys::HeldLocks& held) {
    for (const auto& [name, error] : {std::pair{"flock", held.flock_error}, {"fcntl", held.posix_error}})
      if (error != 0) {
        add(about(m_point, Severity::error, "SF239", fmt::format("{} fails there: {}", name, errno_text(error)),
                  error == ENOLCK ? "of version 3: rpc.statd has to run here, and the server's lock ports to be open"
                                  : "see the server's log"));
        m_result.ok = false;
        return true;
      }
    return false;
  }

  void locks(const std::string& node, const Seen& seen, const std::string& options_here) {
    const auto why = why_unknown(node, seen);
    if (!why.empty()) {
      m_result.ok = false;
      const bool asked = seen.while_held && *seen.while_held && (!seen.after || *seen.after);
      return add(
          untried(m_point, "locks could not be tried with", node, why,
                  asked ? fmt::format("mount the share at {} on {}, too", m_point.target, node) : ssh_hint(node)));
    }
    const auto& during = **seen.while_held;
    const auto& after = **seen.after;
    m_result.flock = exclusion_of(during.flock, after.flock);
    m_result.posix = exclusion_of(during.posix, after.posix);
    std::string good, open;
    for (const auto& [name, what, first, second] : {std::tuple{"flock", m_result.flock, during.flock, after.flock},
                                                    std::tuple{"fcntl", m_result.posix, during.posix, after.posix}}) {
      if (what == Exclusion::excludes)
        good += (good.empty() ? "" : ", ") + std::string(name);
      else if (what == Exclusion::open)
        open += (open.empty() ? "" : ", ") + std::string(name);
      else if (what == Exclusion::stuck)
        add(untried(m_point, "a lock was let go, and is still refused to", node, name,
                    "try again; a server keeps locks of a client that was reset for up to 90 s"));
      else
        add(untried(m_point, fmt::format("{} could not be tried with", name), node, first == "held" ? second : first,
                    ""));
    }
    if (!good.empty())
      m_result.good.push_back(fmt::format("locks exclude {} ({})", node, good));
    if (!open.empty()) {
      add(open_locks(m_point, node, open, options_here, during.options));
      m_result.ok = false;
    }
    if (m_result.flock == Exclusion::unknown || m_result.flock == Exclusion::stuck ||
        m_result.posix == Exclusion::stuck)
      m_result.ok = false;
  }

  void server(const Seen& seen, const std::vector<std::string>& addresses) {
    const auto& host = m_point.server;
    if (!seen.server || !*seen.server) {
      m_result.ok = false;
      return add(untried(m_point, "this host could not be seen from its server", host,
                         seen.server ? seen.server->error().message : "no answer", ssh_hint(host)));
    }
    const auto& view = **seen.server;
    m_result.admission = admission_of(view, addresses, m_point.path);
    if (m_result.admission)
      m_result.good.push_back(fmt::format("{} admits this host as {} with {}", server_of(m_point),
                                          m_result.admission->client, m_result.admission->options));
    else
      add(untried(m_point, "how this host is admitted is not known on", host,
                  view.exports.empty() ? "/proc/net/rpc there could not be read"
                                       : "it has decided nothing for an address of this host",
                  view.exports.empty() ? "let ssh log in as root there"
                                       : "a router may give this host another address"));
    if (m_result.admission && std::ranges::count(split(m_result.admission->options, ','), "async") > 0)
      add(about(m_point, Severity::warning, "SF244",
                fmt::format("{} answers before data is on its disk (async): what was written is lost if it crashes",
                            server_of(m_point)),
                "write `sync` in the options of its export"));
    if (!view.missing.empty() || view.token != seen.held.token)
      return add(untried(m_point, "owners could not be compared with", host,
                         view.missing.empty() ? "another directory is at " + m_point.path : view.missing,
                         "below `fsid=0` paths of version 4 are others than the server's own"));
    if (const auto here = fmt::to_string(seen.held.uid); !view.owner.empty() && view.owner != here)
      add(about(m_point, Severity::warning, "SF237",
                fmt::format("a file belongs to uid {} on {} and shows here as uid {}{}", view.owner, host, here,
                            seen.held.uid == k_nobody ? " (nobody)" : ""),
                "id mapping of NFS 4: the same Domain in /etc/idmapd.conf on both sides, and the same names"));
  }

 private:
  static std::string why_unknown(const std::string& node, const Seen& seen) {
    for (const auto* one : {&seen.while_held, &seen.after}) {
      if (!*one)
        return "it was not asked";
      const auto& view = **one;
      if (!view)
        return view.error().message;
      if (!view->missing.empty())
        return view->missing;
      if (view->token != seen.held.token)
        return fmt::format("another file is in its place on {}", node);
    }
    return "";
  }
  void add(Diagnosis diagnosis) { m_found.push_back(std::move(diagnosis)); }

  const MountPoint& m_point;
  Elsewhere& m_result;
  Diagnoses& m_found;
};

Accounts accounts_here(sys::System& system, const RemoteQuestion& question) {
  Accounts here;
  for (const auto& [database, names, into] :
       {std::tuple{"passwd", &question.users, &here.users}, std::tuple{"group", &question.groups, &here.groups}}) {
    if (names->empty())
      continue;
    sys::Command getent;
    getent.argv = {"getent", database, "--"};
    append(getent.argv, *names);
    if (const auto answered = system.run(getent))
      for (const auto& line : split_lines(answered->out))
        if (const auto fields = split(line, ':'); fields.size() > 2)
          (*into)[fields[0]] = fields[2];
  }
  return here;
}

std::int64_t seconds_of(sys::System& system) {
  return std::chrono::duration_cast<std::chrono::seconds>(system.now().time_since_epoch()).count();
}

} // namespace

ElsewhereFound look_from_elsewhere(sys::System& system, const std::vector<WrittenPoint>& points,
                                   const ElsewhereRequest& request) {
  ElsewhereFound all;
  const auto table = system.mounts();
  const auto self = system.identity();
  Other node(system, request.node);
  std::map<std::string, Other> servers;
  std::set<std::string> judged; // what is of a host, not of a mount: once
  for (const auto& written : points) {
    const auto& point = written.point;
    const auto& writer = written.writer;
    Elsewhere result;
    result.target = point.target;
    Judge judge(point, result, all.diagnoses);
    RemoteQuestion question{point.target, "", false, request.users, request.groups};
    if (writer && writer->uid != 0 && writer->uid != k_nobody)
      question.users.push_back(fmt::to_string(writer->uid));
    if (writer && writer->gid != 0 && writer->gid != k_nobody)
      question.groups.push_back(fmt::to_string(writer->gid));
    const auto here = accounts_here(system, question);
    const auto ask = [&](Other& other, const std::optional<sys::User>& as) {
      const auto asked = seconds_of(system);
      auto view = other.ask(question, as);
      if (view && judged.insert(other.host()).second) {
        if (view->time)
          judge_clock(point, other.host(), ahead_of(*view->time, asked, seconds_of(system)), all.diagnoses);
        append(all.diagnoses, compare_accounts(point, other.host(), here, view->accounts));
      }
      return view;
    };
    Seen seen;
    const auto held = system.hold_locks({point.target, writer, request.deadline}, [&](const sys::HeldLocks& locks) {
      question.file = locks.name;
      const bool refused = locks.flock_error != 0 || locks.posix_error != 0;
      if (locks.held)
        seen.held = locks;
      if (locks.held && request.server) {
        question.directory = point.path;
        question.server = true;
        auto& server = servers.try_emplace(point.server, system, point.server).first->second;
        seen.server = ask(server, std::nullopt);
        question.directory = point.target;
        question.server = false;
      }
      if (request.node.empty() || refused || sys::interrupted())
        return;
      (locks.held ? seen.while_held : seen.after) = ask(node, writer);
    });
    if (!held) {
      result.ok = false;
      all.diagnoses.push_back(about(point, Severity::warning, "SF240",
                                    "a lock could not be tried there: " + held.error().message,
                                    held.error().code == ErrorCode::timeout
                                        ? "a server grants none for up to 90 s after its start; try again then"
                                        : "run `sharefs status` for the state of the mount"));
    } else {
      const auto* mount = table ? table->at(point.target) : nullptr;
      const bool itself = seen.while_held && *seen.while_held && (*seen.while_held)->host == self.hostname &&
                          (*seen.while_held)->boot_id == self.boot_id;
      if (itself) {
        result.ok = false;
        all.diagnoses.push_back(untried(point, "locks could not be tried with", request.node, "it is this host",
                                        "name another node that has the share mounted"));
      } else if (!judge.refused(seen.held) && !request.node.empty()) {
        judge.locks(request.node, seen, mount == nullptr ? "" : mount->super_options);
      }
      if (request.server)
        judge.server(seen, self.addresses);
    }
    all.results.push_back(std::move(result));
  }
  return all;
}

} // namespace sharefs::mounts
