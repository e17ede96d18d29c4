#include "sys/identity/identity.hpp"

#include "base/number.hpp"
#include "base/source.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/identity/user_namespace.hpp"
#include "sys/net/addresses.hpp"
#include "sys/process/call.hpp"
#include "sys/process/child.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstdio>
#include <grp.h>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <pwd.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace sharefs::sys {
namespace {

constexpr std::chrono::milliseconds k_name_service_deadline{5000};

/// Returns the address of an interface as text; "" for one that no other host can use.
std::string usable_address(const ifaddrs& interface) {
  const sockaddr* address = interface.ifa_addr;
  if (address == nullptr || (interface.ifa_flags & IFF_UP) == 0 || (interface.ifa_flags & IFF_LOOPBACK) != 0)
    return {};
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  if (address->sa_family == AF_INET)
    return numeric_address(*address, sizeof(sockaddr_in));
  if (address->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
    return numeric_address(*address, sizeof(sockaddr_in6));
  return {};
}

/// Returns the number of this process's PID namespace; "" for the first one of the kernel, whose number is fixed.
std::string own_pid_namespace() {
  constexpr std::string_view k_first = "pid:[4026531836]"; // PROC_PID_INIT_INO of linux/proc_ns.h
  const auto text = read_link(AT_FDCWD, "/proc/self/ns/pid").value_or("");
  const auto begin = text.find('[');
  return text == k_first || begin == std::string_view::npos ? "" : text.substr(begin + 1, text.find(']') - begin - 1);
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> result;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0)
    return result;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next)
    if (std::string address = usable_address(*one);
        !address.empty() && std::find(result.begin(), result.end(), address) == result.end())
      result.push_back(std::move(address));
  ::freeifaddrs(list);
  return result;
}

/// Calls `use` with each line of /etc/passwd. This is a local file, so no name service is asked and nothing can hang.
template <class Use> void for_each_local_user(Use use) {
  const auto close_file = [](FILE* file) { std::fclose(file); };
  const std::unique_ptr<FILE, decltype(close_file)> file(std::fopen("/etc/passwd", "re"), close_file);
  std::array<char, 8192> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  while (file && ::fgetpwent_r(file.get(), &entry, buffer.data(), buffer.size(), &found) == 0)
    use(entry);
}

std::vector<gid_t> groups_of(const passwd& entry) {
  std::vector<gid_t> groups(64);
  for (;;) {
    int count = static_cast<int>(groups.size());
    const bool complete = ::getgrouplist(entry.pw_name, entry.pw_gid, groups.data(), &count) >= 0;
    groups.resize(static_cast<std::size_t>(std::max(count, 0)));
    if (complete || groups.size() > 65536)
      return groups;
  }
}

/// Asks the name service for a user, by `uid` if it is given; it runs in a child. nullopt: there is no such user.
Result<std::optional<User>> ask_name_service(const std::string& name, std::optional<uid_t> uid, bool with_groups) {
  std::vector<char> buffer(1024);
  passwd entry{};
  passwd* found = nullptr;
  const auto ask = [&] {
    return uid ? ::getpwuid_r(*uid, &entry, buffer.data(), buffer.size(), &found)
               : ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  };
  int error = ask();
  for (; error == ERANGE && buffer.size() < (1U << 20U); error = ask())
    buffer.resize(buffer.size() * 2);
  // A user that does not exist is reported by one of several errno values, see getpwnam(3).
  if (found == nullptr && (error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM))
    return std::nullopt;
  if (found == nullptr)
    return fail(errno_error(error, "cannot look up a user"));
  User user{entry.pw_name, entry.pw_uid, entry.pw_gid, {}, entry.pw_dir, entry.pw_shell};
  if (with_groups)
    user.groups = groups_of(entry);
  return user;
}

std::string without_domain(const std::string& name) {
  return name.substr(0, name.find('.'));
}

} // namespace

std::string own_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string own_boot_id() {
  const Fd fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  std::string text;
  (void)read_all(fd.get(), text);
  return std::string(trim(text));
}

std::optional<std::string> address_bytes(const std::string& text) {
  std::array<char, sizeof(in6_addr)> bytes{};
  if (::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1)
    return std::string(bytes.data(), sizeof(in_addr));
  if (::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1)
    return std::string(bytes.data(), bytes.size());
  return std::nullopt;
}

bool is_this_host(const Identity& identity, const std::string& host) {
  if (const auto address = address_bytes(host))
    return *address == address_bytes("::1") || (address->size() == sizeof(in_addr) && address->front() == 127) ||
           std::ranges::any_of(identity.addresses,
                               [&](const std::string& own) { return address_bytes(own) == address; });
  if (host.empty() || is_same_host(host, "localhost"))
    return !host.empty();
  return is_same_host(host, identity.hostname) ||
         (host == without_domain(host) && is_same_host(host, without_domain(identity.hostname)));
}

Result<User> local_user(const std::string& name) {
  const auto answer = call(std::nullopt, k_name_service_deadline,
                           [&] { return ask_name_service(name, parse_number<uid_t>(name), true); });
  if (!answer && answer.error().code == ErrorCode::timeout)
    return fail(ErrorCode::timeout, "the name service does not answer for user `" + name + "`",
                "check the name services in /etc/nsswitch.conf (LDAP, NIS, sssd)");
  TRY(answer);
  if (*answer)
    return **answer;
  std::vector<std::string> names;
  for_each_local_user([&names](const passwd& entry) { names.emplace_back(entry.pw_name); });
  return fail(ErrorCode::not_found, "there is no user `" + name + "`", did_you_mean_hint(name, names));
}

Identity local_identity() {
  Identity identity;
  identity.hostname = own_name();
  identity.boot_id = own_boot_id();
  identity.pid_namespace = own_pid_namespace();
  identity.uid = ::geteuid();
  identity.outside_uid = outside_uid(identity.uid);
  identity.gid = ::getegid();
  identity.pid = ::getpid();
  struct stat info{};
  identity.systemd = ::stat("/run/systemd/system", &info) == 0 && S_ISDIR(info.st_mode);
  identity.addresses = own_addresses();
  for_each_local_user([&identity](const passwd& entry) {
    if (entry.pw_uid != identity.uid || !identity.user.empty())
      return;
    identity.user = entry.pw_name;
    identity.home = entry.pw_dir;
  });
  if (identity.user.empty()) {
    const auto answer =
        call(std::nullopt, k_name_service_deadline, [&] { return ask_name_service({}, identity.uid, false); });
    if (answer && *answer) {
      identity.user = (*answer)->name;
      identity.home = (*answer)->home;
    }
  }
  if (identity.user.empty())
    identity.user = std::to_string(identity.uid);
  return identity;
}

} // namespace sharefs::sys
