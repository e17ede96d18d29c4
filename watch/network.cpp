#include "watch/network.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "sys/identity/own_host.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <set>

namespace sharefs::watch {

namespace {

using nlohmann::json;
using namespace std::chrono_literals;

constexpr auto k_tool_deadline = 3s;
constexpr auto k_names_budget = 3s; ///< for all names together: a name service that is away is said by others
constexpr std::size_t k_most_output = 16U << 20U;

template <class Number> Number number_of(std::string_view text) {
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string text_in(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}
std::uint64_t number_in(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

Interface interface_of(const json& object) {
  Interface one;
  one.name = text_in(object, "ifname");
  one.mtu = number_in(object, "mtu");
  if (const auto flags = object.find("flags"); flags != object.end() && flags->is_array())
    one.up = std::ranges::find(*flags, json("LOWER_UP")) != flags->end();
  if (const auto all = object.find("addr_info"); all != object.end() && all->is_array())
    for (const auto& address : *all)
      if (address.is_object() && text_in(address, "scope") == "global")
        one.subnets.push_back({text_in(address, "local"), static_cast<unsigned>(number_in(address, "prefixlen"))});
  return one;
}

void add_route(const json& object, Network& network) {
  Route route{text_in(object, "dev"), text_in(object, "gateway"), 0};
  if (const auto metrics = object.find("metrics"); metrics != object.end() && metrics->is_array())
    for (const auto& metric : *metrics)
      if (metric.is_object())
        route.mtu = std::max(route.mtu, number_in(metric, "mtu"));
  if (const auto address = text_in(object, "dst"); !address.empty() && !route.interface.empty())
    network.routes.insert_or_assign(address, std::move(route));
}

std::optional<std::string> run(sys::System& system, Argv argv, std::string input = {},
                               std::chrono::milliseconds deadline = k_tool_deadline) {
  sys::Command command;
  command.argv = std::move(argv);
  command.input = std::move(input);
  command.deadline = deadline;
  command.output_limit = k_most_output;
  const auto done = system.run(command);
  return done && !done->timed_out ? std::optional(done->out) : std::nullopt; // with a route missing it exits with 1
}

/// "storage1" of "storage1:/srv/share"; empty for an address.
std::string name_of(const Measured& one) {
  const auto& source = one.statistics.source;
  const auto host = source.substr(0, source.find(":/"));
  return host.starts_with('[') || sys::address_bytes(host) ? "" : host;
}

void read_speeds(sys::System& system, std::vector<Interface>& interfaces) {
  sys::EntryRequest request;
  for (const auto& one : interfaces)
    request.queries.push_back(
        {.path = fmt::format("/sys/class/net/{}/speed", one.name), .follow = true, .read_bytes = 32});
  const auto answers = system.entries(request);
  for (std::size_t index = 0; index < answers.size() && index < interfaces.size(); ++index)
    interfaces[index].speed = number_of<std::uint64_t>(trim(answers[index].content)); // "-1": not known
}

void resolve_names(sys::System& system, const std::set<std::string>& names, Network& network) {
  auto left = std::chrono::milliseconds(k_names_budget);
  for (const auto& name : names) {
    const auto begin = std::chrono::steady_clock::now();
    const auto text = run(system, {"getent", "ahosts", name}, {}, left);
    if (!text)
      return; // nor would the next be answered
    auto& addresses = network.addresses[name];
    for (const auto& line : split_lines(*text))
      if (const auto words = split_words(line);
          !words.empty() && std::ranges::find(addresses, words[0]) == addresses.end())
        addresses.push_back(words[0]);
    left -= std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
    if (left <= 0ms)
      return;
  }
}

} // namespace

void parse_ip(std::string_view text, Network& network) {
  for (const auto& line : split_lines(text)) {
    const auto document = read_json(line, {.bytes = k_most_output}).value_or(json());
    if (!document.is_array())
      continue;
    for (const auto& object : document)
      if (object.is_object() && object.contains("ifname"))
        network.interfaces.push_back(interface_of(object));
      else if (object.is_object() && object.contains("dst"))
        add_route(object, network);
  }
}

std::vector<Connection> parse_connections(std::string_view text) {
  std::vector<Connection> connections;
  for (const auto& line : split_lines(text)) {
    const auto words = split_words(line); // RECV-Q SEND-Q LOCAL:PORT PEER:PORT ... mss:1448 ... advmss:1448
    if (words.size() < 4)
      continue;
    auto address = words[3].substr(0, words[3].rfind(':'));
    if (address.starts_with('[') && address.ends_with(']'))
      address = address.substr(1, address.size() - 2);
    if (address.starts_with("::ffff:"))
      address = address.substr(7);
    Connection one{address, number_of<std::uint16_t>(words[3].substr(words[3].rfind(':') + 1)), 0, 0};
    for (const auto& word : words) {
      if (word.starts_with("mss:"))
        one.mss = number_of<std::uint64_t>(std::string_view(word).substr(4));
      if (word.starts_with("advmss:"))
        one.advertised = number_of<std::uint64_t>(std::string_view(word).substr(7));
    }
    if (one.mss > 0 && one.advertised > 0)
      connections.push_back(std::move(one));
  }
  return connections;
}

Network probe_network(sys::System& system, const Reading& reading) {
  Network network;
  std::set<std::string> servers, names;
  for (const auto& one : reading.mounts)
    if (sys::address_bytes(one.address) && servers.size() < k_most_servers) {
      servers.insert(one.address);
      if (const auto name = name_of(one); !name.empty())
        names.insert(name);
    }
  if (servers.empty())
    return network;
  std::string commands = "address show\n";
  for (const auto& address : servers)
    commands += fmt::format("route get {}\n", address);
  const auto ways = run(system, {"ip", "-json", "-force", "-batch", "-"}, commands);
  if (!ways)
    return network;
  parse_ip(*ways, network);
  read_speeds(system, network.interfaces);
  if (const auto connections = run(system, {"ss", "-tinHO", "state", "established"}))
    network.connections = parse_connections(*connections);
  if (network.interfaces.size() > 2) // else there is no other way than that beside the loopback
    resolve_names(system, names, network);
  return network;
}

} // namespace sharefs::watch
