// make_mount: mount.nfs takes a path and resolves it again, so it never gets the real mount point. It mounts in its own
// mount namespace, which nobody else sees, and the finished mount is moved onto the directory that was checked. If
// mount.nfs is killed, a mount that it still makes disappears together with its namespace.
#include "sys/mounting/mounting.hpp"

#include "base/argv.hpp"
#include "base/number.hpp"
#include "base/source.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/mounting/local_mounts.hpp"
#include "sys/mounts/mount_watch.hpp"
#include "sys/net/connect.hpp"
#include "sys/process/call.hpp"
#include "sys/process/child.hpp"
#include "sys/process/interrupt.hpp"
#include "sys/programs/process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fmt/format.h>
#include <netdb.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

namespace sharefs::sys {
namespace {

/// The directory on which mount.nfs mounts in its own namespace. Below /run only root can make or replace anything.
constexpr const char* k_staging = "/run/sharefs-mount";
constexpr std::chrono::milliseconds k_server_deadline{3000};

/// A message of mount.nfs with its error code and a hint.
struct KnownFailure {
  std::string_view text;
  ErrorCode code;
  std::string_view message; ///< our message, with HOST and PATH filled in; empty: the line of mount.nfs is used
  std::string_view hint;
};
constexpr std::array<KnownFailure, 14> k_known_failures{{
    {"access denied by server", ErrorCode::permission, "HOST does not let this host mount PATH",
     "run `sharefs probe HOST`, and `sharefs export --all` on the server"},
    {"is masked", ErrorCode::failed, "",
     "run `systemctl unmask rpcbind.socket rpcbind.service rpc-statd.service`; NFS version 4 does not need them"},
    {"rpc.statd is not running", ErrorCode::failed, "",
     "start it: `systemctl start rpc-statd`, or without systemd `rpc.statd`; NFS version 4 does not need it"},
    {"must be superuser", ErrorCode::permission, "", "run sharefs as root"},
    {"Operation not permitted", ErrorCode::permission, "",
     "in a container, mounting needs CAP_SYS_ADMIN; else the server may insist on a reserved port (`secure`)"},
    {"Permission denied", ErrorCode::permission, "", "run `sharefs probe HOST`"},
    {"No such file or directory", ErrorCode::not_found, "HOST has no directory PATH",
     "if it is there, the server may export it under another name (`fsid=0`): run `sharefs probe HOST`"},
    {"requested NFS version or transport protocol is not supported", ErrorCode::unsupported, "",
     "run `sharefs probe HOST` to see which versions the server offers"},
    {"Protocol not supported", ErrorCode::unsupported, "",
     "run `sharefs probe HOST` to see which versions the server offers"},
    {"an incorrect mount option was specified", ErrorCode::usage, "",
     "check the share's `options` against nfs(5), and /etc/nfsmount.conf, whose settings mount.nfs adds to them; "
     "`sec=krb5` needs rpc.gssd"},
    {"timed out", ErrorCode::timeout, "", "the server does not answer: run `sharefs probe HOST`"},
    {"Connection refused", ErrorCode::failed, "", "no NFS server is running there: run `sharefs probe HOST`"},
    {"busy or already mounted", ErrorCode::busy, "", ""},
    {"mount system call failed", ErrorCode::failed, "",
     "check the share's `options` against nfs(5); `dmesg` may say more"},
}};

std::string server_of(const MountCall& call) {
  return call.server.empty() ? parse_source(call.source).server : call.server;
}

/// True if the options name this transport: `proto=rdma`, `proto=rdma6` or `rdma`.
bool uses(const std::string& options, const std::string& transport) {
  return option_value(options, "proto").value_or("").starts_with(transport) || option_value(options, transport);
}

std::string fill_in(std::string_view text, const MountCall& call) {
  std::string result(text);
  const auto server = server_of(call);
  for (const auto& [words, value] :
       {std::pair<std::string_view, std::string>{"sharefs probe HOST", probe_command(ports_in(call.options), server)},
        {"HOST", server},
        {"PATH", parse_source(call.source).path}})
    if (const auto at = result.find(words); at != std::string::npos)
      result.replace(at, words.size(), value);
  return result;
}

/// Returns the first line that is not empty, without the name of the program, and with the real mount point.
std::string first_line(const MountCall& call, const std::string& stderr_text) {
  std::string line;
  for (const std::string& one : split_lines(stderr_text))
    if (line.empty())
      line = std::string(trim(one));
  if (line.starts_with("mount.nfs"))
    if (const auto colon = line.find(": "); colon != std::string::npos)
      line = line.substr(colon + 2);
  if (const auto at = line.find(k_staging); at != std::string::npos)
    line.replace(at, std::string_view(k_staging).size(), call.target);
  while (line.ends_with('.'))
    line.pop_back();
  return line;
}

/// Returns the options without `bg`: a mount made in the background would stay in the namespace of mount.nfs.
std::string foreground_options(const std::string& options) {
  auto words = split(options, ',');
  std::erase_if(words, [](const std::string& word) { return word.empty() || word == "bg"; });
  return join(words, ",");
}

// ---- functions that run in the child ----

/// Checks that the server answers, because mount.nfs waits for minutes otherwise. A refused connection counts as an
/// answer; mount.nfs reports it itself.
Result<void> check_server(const MountCall& call) {
  if (uses(call.options, "rdma") || uses(call.options, "udp"))
    return {};
  const std::string host = parse_source(call.source).server;
  const auto addresses = resolve_host(host);
  if (!addresses && addresses.error() == EAI_NONAME)
    return fail(ErrorCode::not_found, "`" + host + "` is no known host");
  if (!addresses)
    return fail(ErrorCode::failed, "the address of `" + host + "` cannot be found");
  const auto until = deadline_in(std::min<std::chrono::milliseconds>(call.deadline, k_server_deadline));
  const auto connected = connect_to(*addresses, ports_in(call.options).nfs, until);
  if (connected || connected.error() == ECONNREFUSED)
    return {};
  return fail(ErrorCode::timeout,
              "server " + server_of(call) + " does not answer (" + errno_text(connected.error()) +
                  "): it was not mounted",
              fill_in("run `sharefs probe HOST`", call));
}

/// Starts rpc.statd for the locks of NFS 3, as mount.nfs would do. It is started before the mount namespace is made,
/// because the daemon would keep that namespace alive.
void start_lock_service(const MountCall& call) {
  const bool version_3 = option_value(call.options, "vers") == "3" || option_value(call.options, "nfsvers") == "3" ||
                         option_value(call.options, "v3");
  if (!version_3 || option_value(call.options, "nolock"))
    return;
  Command command;
  command.argv = {"/usr/sbin/start-statd"};
  command.deadline = k_server_deadline;
  [[maybe_unused]] const auto started = run_process(command); // mount.nfs reports an error itself
}

/// Runs mount.nfs, which ends with this process.
Result<Completed> run_mount_nfs(const MountCall& call) {
  Command command;
  command.argv = {"mount.nfs", call.source, k_staging, "-n"};
  if (const auto options = foreground_options(call.options); !options.empty())
    command.argv.insert(command.argv.end(), {"-o", options});
  command.environment = {{"LC_ALL", "C"}};
  command.deadline = call.deadline;
  command.ends_with_us = true;
  auto done = run_process(command);
  if (!done && done.error().code == ErrorCode::not_found)
    return fail(ErrorCode::not_found, "`mount.nfs` is not installed",
                "run `apt-get install nfs-common` (Debian, Ubuntu) or `dnf install nfs-utils` (RHEL, Rocky)");
  return done;
}

/// Returns the number of the visible mount at the path; 0: there is none, or it is not known.
int mount_at(const std::string& target) {
  const auto table = MountWatch().current();
  const auto* mount = table ? table->at(target) : nullptr;
  return mount == nullptr ? 0 : mount->id;
}

Error not_isolated(int error_number) {
  return errno_error(error_number, "cannot make a mount namespace", "in a container, mounting needs CAP_SYS_ADMIN");
}

Result<void> mount_in_child(const MountCall& call) {
  if (call.fs_type == k_bind)
    return bind_in_child(call);
  if (call.fs_type == k_remount)
    return remount_in_child(call);
  if (call.fs_type == k_image)
    return image_in_child(call);
  if (call.fs_type == k_user_image)
    return user_image_in_child(call);
  TRY(check_server(call));
  start_lock_service(call);
  TRY_ASSIGN(const auto target, open_directory(call.target));
  const int before = mount_at(call.target);
  const Fd ours(::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
  // The mounts are slaves, not private, so that this namespace does not keep mounts alive that others end meanwhile.
  if (!ours || ::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0 ||
      (::mkdir(k_staging, 0700) != 0 && errno != EEXIST))
    return fail(not_isolated(errno));
  TRY_ASSIGN(const auto done, run_mount_nfs(call));
  // The table of the new namespace is checked, because libmount has returned 0 for mounts that had failed.
  const auto table = MountWatch().current();
  const auto* staged = table ? table->at(k_staging) : nullptr;
  if (staged == nullptr || !is_nfs(*staged)) {
    const auto text = done.err + done.out, line = first_line(call, text);
    if (!done.ok())
      return fail(mount_error(call, text));
    return fail(ErrorCode::failed,
                "mount.nfs reported success, but nothing is mounted" + (line.empty() ? "" : ": " + line));
  }

  const Fd tree(static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, k_staging, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  const int error = tree ? 0 : errno;
  ::umount2(k_staging, MNT_DETACH); // otherwise an rpc.statd of mount.nfs keeps this mount alive
  if (!tree || ::setns(ours.get(), CLONE_NEWNS) != 0)
    return fail(errno_error(tree ? errno : error, "cannot take the mount to " + call.target,
                            error == ENOSYS ? "sharefs needs Linux 5.2 or newer" : ""));
  // The kernel accepts a second mount on the same directory from move_mount(2), where mount(2) refuses the same source.
  if (mount_at(call.target) != before)
    return fail(ErrorCode::conflict, call.target + ": something else was mounted there meanwhile; nothing was mounted",
                "run `sharefs status`, then the command again if it is still needed");
  return attach(tree, target, call);
}

} // namespace

std::string restrictions_in(const std::string& options) {
  const auto words = split(options, ',');
  std::vector<std::string> found;
  for (const char* word : {"ro", "nosuid", "nodev", "noexec"})
    if (std::ranges::count(words, word) > 0)
      found.emplace_back(word);
  return join(found, ",");
}

NfsPorts ports_in(const std::string& options) {
  const auto number_of = [&options](std::string_view name) {
    return parse_number<std::uint16_t>(option_value(options, name).value_or("")).value_or(0);
  };
  NfsPorts ports;
  if (option_value(options, "port").value_or("").empty())
    return ports; // mount.nfs asks the portmapper for mountd, too
  ports.mountd = number_of("mountport");
  // `port=0` lets the client ask the portmapper, and `proto=rdma` has a port of its own kind.
  if (const auto port = number_of("port"); port != 0 && !uses(options, "rdma"))
    ports.nfs = port;
  return ports;
}

std::string port_words(const NfsPorts& ports) {
  return (ports.nfs == NfsPorts().nfs ? "" : fmt::format("--port={} ", ports.nfs)) +
         (ports.mountd == 0 ? "" : fmt::format("--mountport={} ", ports.mountd));
}

std::string probe_command(const NfsPorts& ports, const std::string& server) {
  return fmt::format("sharefs probe {}{}", port_words(ports), shell_quote(server));
}

std::string restrictions_of(const MountEntry& mount) {
  const bool read_only = split(mount.super_options, ',').front() == "ro";
  return restrictions_in(mount.options + (read_only ? ",ro" : ""));
}

Error mount_error(const MountCall& call, const std::string& stderr_text) {
  const auto* known = std::find_if(k_known_failures.begin(), k_known_failures.end(), [&](const KnownFailure& failure) {
    return stderr_text.find(failure.text) != std::string::npos;
  });
  std::string line = first_line(call, stderr_text);
  if (line.empty())
    line = "mount.nfs failed without a message";
  if (known == k_known_failures.end())
    return {ErrorCode::failed, line, {}, {}};
  if (!known->message.empty())
    line = fill_in(known->message, call);
  return {known->code, line, fill_in(known->hint, call), {}};
}

Error child_error(const MountCall& call, Error error) {
  const bool is_remount = call.fs_type == k_remount;
  const bool is_local = is_remount || contains({k_bind, k_image, k_user_image}, call.fs_type);
  const auto what = is_remount ? "the remount of " + call.target
                    : is_local ? "mounting " + call.source + " on " + call.target
                               : "mount.nfs";
  if (error.code == ErrorCode::interrupted)
    return {error.code, what + " was ended" + (is_remount ? "" : "; nothing is mounted"), "", ""};
  if (error.code == ErrorCode::timeout && error.hint.empty()) // not from check_server()
    return {error.code, what + " gave " + error.message,
            is_local ? "run `sharefs status` to see which share hangs"
                     : "run `" + probe_command(ports_in(call.options), call.source) + "`", // the path may be a referral
            ""};
  return error;
}

Result<void> make_mount(const MountCall& call) {
  auto mounted = sys::call(std::nullopt, call.deadline, [&call] { return mount_in_child(call); }, interrupted);
  return mounted ? mounted : fail(child_error(call, mounted.error()));
}

} // namespace sharefs::sys
