#include "fleet/push.hpp"

#include "base/argv.hpp"
#include "base/text.hpp"
#include "fleet/script.hpp"

#include <fmt/format.h>

namespace sharefs::fleet {

namespace {

constexpr std::string_view k_push_functions = R"sh(
sum() { sha256sum <"$1" | cut -c 1-64; }
sums() {
  (cd "$1" 2>/dev/null || exit 0
   find -L . -type f ! -name "*.pyc" | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c 1-64)
}
# Finds the place of the program: where it is, or where it will be.
find_program() {
  program=$(command -v sharefs 2>/dev/null) && program=$(readlink -f "$program") || program=$prefix/bin/sharefs
  guard=$(dirname "$(dirname "$program")")/share/sharefs
}
# Nothing is changed if a file could not be renamed to its place in the end.
check_place() { [ ! -d "$1" ] && [ ! -d "$1.new" ] || no "$1 or $1.new is a directory there"; }
version_of_package() {
  if dpkg-query -S "$1" >/dev/null 2>&1; then
    dpkg-query -W -f "\${Version}" sharefs
  elif rpm -qf "$1" >/dev/null 2>&1; then
    rpm -qf "$1"
  fi
}
)sh";

constexpr std::string_view k_say_installed = R"sh(
say machine "$(uname -m)"
if [ -e "$program" ]; then
  say program "$program"
  say program_sum "$(sum "$program")"
  say package "$(version_of_package "$program")"
fi
if [ -d "$guard" ]; then say guard_sum "$(sums "$guard")"; fi
if [ -e "$config" ]; then say config_sum "$(sum "$config")"; fi
if [ -L "$config" ]; then say config_is_link yes; fi
say end ok
)sh";

constexpr std::string_view k_begin_install = R"sh(
set -u
umask 022
config=/etc/sharefs/sharefs.yaml new= changed=
d=$(mktemp -d /var/tmp/sharefs-push.XXXXXX 2>&1) || no "$d"
trap "rm -rf \$d \$new" EXIT
trap "exit 1" HUP INT TERM
said=$(tar -x -o -f - -C "$d" 2>&1) || no "the files did not arrive completely: $said"
# Renames NAME.new, which was written beside its place, over NAME; the old file is kept as NAME.old.
replace() {
  sync "$1.new" 2>/dev/null || sync
  if [ -e "$1" ]; then ln -f "$1" "$1.old" || cp -p "$1" "$1.old" || return 1; fi
  mv -f "$1.new" "$1"
}
)sh";

constexpr std::string_view k_prepare_program = R"sh(
[ "$(sum "$d/sharefs")" = "$program_sum" ] || no "the files did not arrive completely"
find_program
check_place "$program"
checker=$program
if [ ! -e "$program" ] || [ "$(sum "$program")" != "$program_sum" ]; then
  new="$new $program.new"
  said=$(mkdir -p "$(dirname "$program")" 2>&1 && cp "$d/sharefs" "$program.new" 2>&1 && chmod 755 "$program.new" 2>&1) ||
    no "$said"
  said=$("$program.new" --version 2>&1) || no "this program does not run there: $said"
  [ "$said" = "$version" ] || no "the program reports another version there: $said"
  checker=$program.new
fi
)sh";

// apt-get also installs the libraries that the package needs.
constexpr std::string_view k_install_package = R"sh(
if [ "$(dpkg-query -W -f "\${Version}" sharefs 2>/dev/null)" != "$package" ]; then
  command -v dpkg >/dev/null || no "there is no dpkg there"
  export DEBIAN_FRONTEND=noninteractive
  if command -v apt-get >/dev/null; then
    said=$(apt-get -q -y --no-install-recommends --allow-downgrades -o Dpkg::Options::=--force-confold \
      install "$d/sharefs.deb" 2>&1 </dev/null) || no "apt-get: $(printf %s "$said" | tail -n 3)"
  else
    said=$(dpkg -i "$d/sharefs.deb" 2>&1) || no "dpkg: $(printf %s "$said" | tail -n 3)"
  fi
  changed="package, "
fi
find_program
checker=$program
"$checker" --version >/dev/null 2>&1 || no "the package is installed, and its program does not run"
)sh";

constexpr std::string_view k_prepare_config = R"sh(
if ! cmp -s "$d/sharefs.yaml" "$config"; then
  [ ! -L "$config" ] || no "$config is a symbolic link there"
  check_place "$config"
  new="$new $config.new"
  said=$(mkdir -p /etc/sharefs 2>&1 && cp "$d/sharefs.yaml" "$config.new" 2>&1 && chmod 644 "$config.new" 2>&1) ||
    no "$said"
  said=$("$checker" config check "$config.new" 2>&1) || no "sharefs there rejects this sharefs.yaml: $said"
fi
)sh";

constexpr std::string_view k_replace_program = R"sh(
if [ "$(sums "$guard")" != "$(sums "$d/share")" ] && [ -d "$d/share" ]; then
  rm -rf "$guard.old"
  if [ -d "$guard" ]; then cp -a "$guard" "$guard.old" || no "$guard cannot be kept"; fi
# Each file is renamed into its place, so that a Python that starts meanwhile never reads half a file.
  (cd "$d/share" && find . -type f) | while read -r file; do
    mkdir -p "$(dirname "$guard/$file")" && cp "$d/share/$file" "$guard/$file.new" && mv -f "$guard/$file.new" "$guard/$file" ||
      exit 1
  done || no "$guard cannot be written"
  (cd "$guard" && find . -type f ! -name "*.pyc") | while read -r file; do
    [ -e "$d/share/$file" ] || rm -f "$guard/$file"
  done
  changed="${changed}guard, "
fi
if [ -e "$program.new" ]; then
  was=
  [ ! -e "$program" ] || was=yes
  replace "$program" || no "$program cannot be replaced"
  hash -r
  found=$(command -v sharefs) && said=$("$found" --version 2>&1) || said="no sharefs is found in PATH"
  if [ "$said" != "$version" ]; then
    if [ "$was" ]; then mv -f "$program.old" "$program"; else rm -f "$program"; fi
    no "the old program was put back: $said"
  fi
  changed="${changed}program, "
  if [ -d /run/systemd/system ]; then systemctl try-restart sharefs-watch.service >/dev/null 2>&1; fi
fi
)sh";

constexpr std::string_view k_end_install = R"sh(
if [ -e "$config.new" ]; then
  replace "$config" || no "$config cannot be replaced"
  changed="${changed}sharefs.yaml, "
fi
end_well "${changed%, }"
)sh";

nlohmann::ordered_json step(const std::string& description, const std::string& why) {
  return {{"description", description}, {"why", why}};
}

} // namespace

std::string installed_script(const std::string& prefix, const std::string& program, const std::string& guard,
                             const std::string& config) {
  auto text = std::string(k_script_functions) + std::string(k_push_functions) + assign("prefix", prefix) +
              assign("config", config);
  text += program.empty() ? "find_program\n" : assign("program", program) + assign("guard", guard);
  return text + std::string(k_say_installed);
}

std::optional<Installed> parse_installed(std::string_view out) {
  const auto reports = parse_reports(out);
  if (!reports.contains("end"))
    return std::nullopt;
  const auto last = [&](const char* key) { return last_report(reports, key); };
  return Installed{.machine = last("machine"),
                   .program = last("program"),
                   .program_sum = last("program_sum"),
                   .guard_sum = last("guard_sum"),
                   .config_sum = last("config_sum"),
                   .package = last("package"),
                   .config_is_link = reports.contains("config_is_link")};
}

Outcome plan_push(const Node& node, const PushContent& content, const Installed& there) {
  Outcome outcome{.node = node.name, .state = State::failed};
  const bool by_package = !content.package.empty();
  const bool same_program =
      by_package ? there.package == content.package : there.program_sum == content.here.program_sum;
  const bool same_guard = by_package || content.here.guard_sum.empty() || there.guard_sum == content.here.guard_sum;
  if (!by_package && !same_program && there.machine != content.here.machine) {
    outcome.why = fmt::format("this program is for {}, and the node is {}", content.here.machine, there.machine);
    outcome.hint = "`sharefs nodes push --package FILE NODE` with a package for it";
    return outcome;
  }
  if (!by_package && !(same_program && same_guard) && !there.package.empty()) {
    outcome.why = fmt::format("{} there belongs to a package ({})", there.program, there.package);
    outcome.hint = "`sharefs nodes push --package FILE NODE` with the package of this version";
    return outcome;
  }
  if (by_package && !there.program.empty() && there.package.empty()) {
    outcome.why = fmt::format("{} there belongs to no package, and comes before it in PATH", there.program);
    outcome.hint = fmt::format("remove it there: `ssh NODE rm {}`", shell_quote(there.program));
    return outcome;
  }
  if (there.config_is_link && there.config_sum != content.here.config_sum) {
    outcome.why = "/etc/sharefs/sharefs.yaml is a symbolic link there";
    outcome.hint = "replace it by a file, or change what it leads to";
    return outcome;
  }
  auto steps = nlohmann::ordered_json::array();
  const auto program = there.program.empty() ? content.prefix + "/bin/sharefs" : there.program;
  if (!same_program && by_package)
    steps.push_back(step("install the package sharefs " + content.package,
                         there.package.empty() ? "there is none" : "in place of " + there.package));
  else if (!same_program)
    steps.push_back(
        step("write " + program, there.program.empty() ? "there is no sharefs" : "the old one is kept as sharefs.old"));
  if (!same_guard)
    steps.push_back(step("write the guard", "what `sharefs run` puts in front of PYTHONPATH"));
  if (there.config_sum != content.here.config_sum)
    steps.push_back(step("write /etc/sharefs/sharefs.yaml",
                         there.config_sum.empty() ? "there is none" : "the old one is kept as sharefs.yaml.old"));
  outcome.state = steps.empty() ? State::ok : State::pending;
  if (!steps.empty()) {
    outcome.why = count_of(steps.size(), "step") + " to do";
    outcome.document = {{"plan", {{"steps", std::move(steps)}}}};
  }
  return outcome;
}

std::string install_script(const PushContent& content) {
  const bool by_package = !content.package.empty();
  auto text = std::string(k_script_functions) + std::string(k_push_functions) + assign("prefix", content.prefix) +
              assign("program_sum", content.here.program_sum) + assign("version", content.version) +
              assign("package", content.package) + std::string(k_begin_install);
  text += by_package ? k_install_package : k_prepare_program;
  text += k_prepare_config;
  if (!by_package)
    text += k_replace_program;
  return text + std::string(k_end_install);
}

} // namespace sharefs::fleet
