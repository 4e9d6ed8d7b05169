#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "competing_managers.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::doctor {
namespace {

/// A file that runs, or is applied, at boot or when a device appears.
struct BootFile {
  std::string path;  ///< relative to the root
  BootLanguage language = BootLanguage::shell;
};

/// Directories whose files are merged: one in an earlier directory hides the same name in others.
struct FileFamily {
  BootLanguage language;
  const char* name;  ///< below etc, run, usr/local/lib, usr/lib and lib
  const char* suffix;
};

constexpr std::array families{FileFamily{BootLanguage::udev, "udev/rules.d", ".rules"},
                              FileFamily{BootLanguage::tmpfiles, "tmpfiles.d", ".conf"},
                              FileFamily{BootLanguage::modprobe, "modprobe.d", ".conf"},
                              FileFamily{BootLanguage::unit, "systemd/system", ""}};
constexpr std::array places{"etc/", "run/", "usr/local/lib/", "usr/lib/", "lib/"};

constexpr std::array scriptFolders{"etc/cron.d",
                                   "etc/cron.hourly",
                                   "etc/cron.daily",
                                   "etc/cron.weekly",
                                   "etc/cron.monthly",
                                   "var/spool/cron",
                                   "var/spool/cron/crontabs",
                                   "var/spool/cron/tabs",
                                   "etc/init.d",
                                   "etc/rc.d",
                                   "etc/rc.d/init.d",
                                   "etc/network/interfaces.d",
                                   "etc/network/if-pre-up.d",
                                   "etc/network/if-up.d",
                                   "etc/network/if-down.d",
                                   "etc/network/if-post-down.d",
                                   "etc/sysconfig/network-scripts",
                                   "etc/sysconfig/network/scripts",
                                   "etc/NetworkManager/dispatcher.d",
                                   "etc/NetworkManager/dispatcher.d/pre-up.d",
                                   "usr/lib/NetworkManager/dispatcher.d",
                                   "usr/lib/NetworkManager/dispatcher.d/pre-up.d",
                                   "etc/networkd-dispatcher/carrier.d",
                                   "etc/networkd-dispatcher/configured.d",
                                   "etc/networkd-dispatcher/configuring.d",
                                   "etc/networkd-dispatcher/degraded.d",
                                   "etc/networkd-dispatcher/dormant.d",
                                   "etc/networkd-dispatcher/no-carrier.d",
                                   "etc/networkd-dispatcher/off.d",
                                   "etc/networkd-dispatcher/routable.d",
                                   "etc/local.d",
                                   "etc/infiniband",
                                   "etc/libvirt/hooks",
                                   "etc/libvirt/hooks/qemu.d",
                                   "etc/libvirt/hooks/network.d",
                                   "etc/cloud/cloud.cfg.d",
                                   "var/lib/cloud/scripts/per-boot"};
constexpr std::array scriptFiles{"etc/crontab", "etc/anacrontab", "etc/rc.local",
                                 "etc/network/interfaces"};

/// The configuration of a service that creates VFs.
struct ServiceFile {
  const char* path;
  const char* remedy;  ///< of a file that another program generates; empty: edit the file
};

constexpr std::array serviceFiles{
    ServiceFile{"etc/sriov-netplan-shim/interfaces.yaml", ""},
    ServiceFile{
        "var/lib/os-net-config/sriov_config.yaml",
        "remove the PF from os-net-config's own configuration, then let os-net-config write "
        "this file again"},
    ServiceFile{"etc/sriov-operator/sriov-interface-config.yaml",
                "exclude the PF of this node from the SriovNetworkNodePolicy of the SR-IOV network "
                "operator, which writes this file"}};

// Copies that neither run-parts(8) nor cron nor an init system runs.
bool isCopy(std::string_view name) {
  constexpr std::array suffixes{"~",         ".bak",      ".orig",      ".old",      ".save",
                                ".swp",      ".rpmsave",  ".rpmnew",    ".rpmorig",  ".dpkg-old",
                                ".dpkg-new", ".dpkg-bak", ".dpkg-dist", ".ucf-dist", ".ucf-old"};
  return name.starts_with('.') ||
         std::ranges::any_of(suffixes, [&](const char* suffix) { return name.ends_with(suffix); });
}

// Links to what is examined anyway: on merged systems, and on the RHEL family.
bool isAlias(const host::Root& root, const std::string& path) {
  constexpr std::array targets{"usr/lib", "rc.d/init.d", "rc.d/rc.local"};
  const std::string target = root.linkTarget(path).value_or("");
  return std::ranges::any_of(targets, [&](const char* each) { return target.ends_with(each); });
}

void addFamily(const host::Root& root, const FileFamily& family, std::vector<BootFile>& files) {
  std::set<std::string> names;
  for (const std::string place : places) {
    if (place == "lib/" && isAlias(root, "lib")) {
      continue;
    }
    const std::string folder = place + family.name;
    const auto add = [&](const std::string& name, bool isDropIn) {
      if (names.insert(name).second && name.ends_with(isDropIn ? ".conf" : family.suffix)) {
        files.push_back({folder + "/" + name, family.language});
      }
    };
    for (const std::string& name : root.list(folder)) {
      if (family.language == BootLanguage::unit && name.ends_with(".d")) {
        for (const std::string& each : root.list(folder + "/" + name)) {
          add(name + "/" + each, true);
        }
      } else {
        add(name, false);
      }
    }
  }
}

/// The files of this host. Those that a file of the same name in another directory hides
/// (systemd.unit(5), udev(7), tmpfiles.d(5), modprobe.d(5)) are left out.
std::vector<BootFile> bootFiles(const host::Root& root) {
  std::vector<BootFile> files;
  for (const FileFamily& family : families) {
    addFamily(root, family, files);
  }
  for (const std::string& name : root.list("etc/sysfs.d")) {
    files.push_back({"etc/sysfs.d/" + name, BootLanguage::sysfs});
  }
  files.push_back({"etc/sysfs.conf", BootLanguage::sysfs});
  for (const ServiceFile& file : serviceFiles) {
    files.push_back({file.path, BootLanguage::yaml});
  }
  for (const std::string path : scriptFiles) {
    if (!isAlias(root, path)) {
      files.push_back({path, BootLanguage::shell});
    }
  }
  for (const std::string folder : scriptFolders) {
    if (isAlias(root, folder)) {
      continue;
    }
    for (const std::string& name : root.list(folder)) {
      files.push_back({folder + "/" + name, BootLanguage::shell});
    }
  }
  std::erase_if(files, [](const BootFile& file) {
    return isCopy(std::string_view(file.path).substr(file.path.rfind('/') + 1));
  });
  return files;
}

constexpr std::size_t scriptBytes = 65536;
constexpr std::size_t scriptLimit = 4096;  // started scripts that are examined
constexpr unsigned depthLimit = 4;         // a script that a script starts, and so on

/// One writer, as it is kept in a snapshot: the scripts themselves can contain secrets.
struct Writer {
  std::string path;  ///< absolute
  std::size_t line = 0;
  std::string setting;
  std::string starter;  ///< the file that starts this one; empty if it is a boot file itself
};

// Fields are separated by tabs, which printable() escapes.
std::string toLine(const Writer& writer) {
  return printable(writer.path) + "\t" + std::to_string(writer.line) + "\t" +
         printable(writer.setting) + "\t" + printable(writer.starter);
}

std::optional<Writer> fromLine(std::string_view line) {
  std::vector<std::string> fields;
  for (std::size_t at = 0; at <= line.size();) {
    const auto end = std::min(line.find('\t', at), line.size());
    fields.emplace_back(line.substr(at, end - at));
    at = end + 1;
  }
  constexpr std::size_t withoutStarter = 3;
  const auto number = fields.size() < withoutStarter ? std::nullopt : parseNumber(fields[1]);
  if (!number) {
    return std::nullopt;
  }
  return Writer{fields[0], *number, fields[2], fields.size() > withoutStarter ? fields[3] : ""};
}

// Without Root::readText, which removes leading empty lines (lines are counted here) and records
// the whole file for snapshots.
std::optional<std::string> readFile(const host::Root& root, const std::string& path,
                                    std::size_t limit) {
  const FileDescriptor file = root.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  return host::readBytes(file.get(), 0, limit);
}

// Programs below these directories are not scripts.
bool canBeScript(const std::string& path) {
  return std::ranges::none_of(std::array{"/dev/", "/proc/", "/sys/", "/run/"},
                              [&](const char* prefix) { return path.starts_with(prefix); });
}

/// Follows boot files to the scripts that they start.
class Scan {
 public:
  explicit Scan(const host::Root& root) : root_(root), localPrograms_(localPrograms(root)) {}

  std::vector<Writer> run() {
    const auto files = bootFiles(root_);
    for (const BootFile& file : files) {
      seen_.insert(file.path);
    }
    for (const BootFile& file : files) {
      examine(file, "", 0);
    }
    return std::move(found_);
  }

  /// After run().
  [[nodiscard]] const std::vector<BootLine>& setters() const { return setters_; }

 private:
  void examine(const BootFile& file, const std::string& starter, unsigned depth) {
    const auto text = readFile(root_, file.path, scriptBytes);
    if (!text || text->find('\0') != std::string::npos) {
      return;
    }
    for (const VfCountWriter& writer : vfCountWriters(file.language, *text)) {
      found_.push_back({"/" + file.path, writer.line, writer.setting, starter});
    }
    for (const VfCountWriter& setter : vfSetters(file.language, *text)) {
      setters_.push_back({"/" + file.path, setter.line, setter.setting});
    }
    if (depth < depthLimit) {
      for (const std::string& program : startedPrograms(file.language, *text)) {
        follow(pathOf(program), file.path, depth + 1);
      }
    }
  }

  // systemd and the shell search for a program without a path. Scripts of administrators are in
  // /usr/local. Empty if there is none.
  [[nodiscard]] std::string pathOf(const std::string& program) const {
    if (program.starts_with('/')) {
      return program;
    }
    const auto found = localPrograms_.find(program);
    return found == localPrograms_.end() ? std::string() : found->second;
  }

  static std::map<std::string, std::string> localPrograms(const host::Root& root) {
    std::map<std::string, std::string> programs;
    for (const std::string folder : {"usr/local/sbin", "usr/local/bin"}) {
      for (const std::string& name : root.list(folder)) {
        programs.emplace(name, "/" + folder + "/" + name);
      }
    }
    return programs;
  }

  // An executable file in binary format is not read as a whole.
  void follow(const std::string& program, const std::string& starter, unsigned depth) {
    constexpr std::size_t magic = 4;
    if (program.empty()) {
      return;
    }
    const std::string path = program.substr(1);
    if (seen_.size() > scriptLimit || !canBeScript(program) || !seen_.insert(path).second) {
      return;
    }
    if (!readFile(root_, path, magic).value_or("\x7f").starts_with('\x7f')) {
      examine({path, BootLanguage::shell}, "/" + starter, depth);
    }
  }

  const host::Root& root_;
  std::map<std::string, std::string> localPrograms_;
  std::set<std::string> seen_;
  std::vector<Writer> found_;
  std::vector<BootLine> setters_;
};

std::string scan(const host::Root& root) {
  std::vector<std::string> lines;
  std::ranges::transform(Scan(root).run(), std::back_inserter(lines), toLine);
  return join(lines, "\n");
}

std::vector<Writer> writersOf(const View& view) {
  std::vector<Writer> writers;
  const std::string text = view.derived("boot-scripts", [&] { return scan(view.root()); });
  for (const std::string& line : splitLines(text)) {
    if (const auto writer = fromLine(line)) {
      writers.push_back(*writer);
    }
  }
  return writers;
}

std::string writtenSettings(const std::vector<Writer>& writers) {
  std::vector<std::string> parts;
  for (const Writer& writer : writers) {
    parts.push_back(writer.setting + " in line " + std::to_string(writer.line));
  }
  return join(parts, ", ");
}

// What else to do, so that the file stays valid without the setting.
std::string careFor(const std::string& path) {
  const auto isIn = [&](const char* folder) { return path.find(folder) != std::string::npos; };
  if (isIn("/rules.d/")) {
    return ", and the whole rule if it then has no assignment; then `udevadm control --reload`";
  }
  if (isIn("/modprobe.d/")) {
    return " and keep the other options; rebuild the initramfs if it contains this module";
  }
  if (isIn("/systemd/system/")) {
    return " and keep the rest of the unit, or disable the unit if it does nothing else; then "
           "`systemctl daemon-reload`";
  }
  if (path.ends_with(".yaml")) {
    return ", and an interface that would become empty";
  }
  if (isIn("cron") || isIn("/interfaces")) {
    return "";  // each line stands alone
  }
  return "; the command `:` in its place keeps a block valid that would become empty";
}

std::string remedyFor(const std::vector<Writer>& writers) {
  const Writer& first = writers.front();
  const auto* const service =
      std::ranges::find(serviceFiles, std::string_view(first.path).substr(1), &ServiceFile::path);
  if (service != serviceFiles.end() && *service->remedy != '\0') {
    return service->remedy;
  }
  constexpr std::string_view library = "/lib/";
  const auto at = first.path.find(library);
  const bool hides = first.starter.empty() && at != std::string::npos &&
                     (first.path.starts_with("/usr/") || at == 0);
  return (hides ? editing(first.path.substr(1), "etc", first.path.substr(at + library.size()))
                : "in " + first.path + ", ") +
         "remove " + writtenSettings(writers) + careFor(first.path);
}

std::vector<std::string> vfCountArguments(const View& view) {
  auto arguments = view.settings("proc/cmdline");
  std::erase_if(arguments, [](const std::string& argument) {
    return argument.find(".num_vfs=") == std::string::npos &&
           argument.find(".max_vfs=") == std::string::npos;
  });
  return arguments;
}

}  // namespace

void checkBootScripts(const View& view, Results& results) {
  const std::string expected = "no other writer of sriov_numvfs";
  std::map<std::string, std::vector<Writer>> files;
  for (const Writer& writer : writersOf(view)) {
    files[writer.path].push_back(writer);
  }
  for (const auto& [path, found] : files) {
    const std::string& starter = found.front().starter;
    results.failed(path, expected,
                   writtenSettings(found) + (starter.empty() ? "" : "; started by " + starter),
                   remedyFor(found));
  }
  const auto arguments = vfCountArguments(view);
  for (const std::string& argument : arguments) {
    results.failed("/proc/cmdline", expected, argument,
                   "remove " + argument + " from the kernel command line, then reboot");
  }
  if (files.empty() && arguments.empty()) {
    results.passed("", expected, "none");
  }
}

std::vector<BootLine> vfCountLines(const View& view) {
  std::vector<BootLine> lines;
  for (const Writer& writer : writersOf(view)) {
    lines.push_back({writer.path, writer.line, writer.setting});
  }
  return lines;
}

std::vector<BootLine> vfSettingLines(const host::Root& root) {
  Scan scan(root);
  static_cast<void>(scan.run());
  return scan.setters();
}

std::string lineOfFile(const host::Root& root, const BootLine& line) {
  const auto lines = splitLines(readFile(root, line.file.substr(1), scriptBytes).value_or(""));
  return line.line == 0 || line.line > lines.size() ? "" : lines[line.line - 1];
}

}  // namespace vfpass::doctor
