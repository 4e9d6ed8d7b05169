#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "boot_files.hpp"
#include "rivals.hpp"
#include "vf_count_writers.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

constexpr std::size_t fileLimit = 65536;
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
  explicit Scan(const host::Root& root) : root_(root) {}

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

 private:
  void examine(const BootFile& file, const std::string& starter, unsigned depth) {
    const auto text = readFile(root_, file.path, fileLimit);
    if (!text || text->find('\0') != std::string::npos) {
      return;
    }
    for (const VfCountWriter& writer : vfCountWriters(file.language, *text)) {
      found_.push_back({"/" + file.path, writer.line, writer.setting, starter});
    }
    if (depth < depthLimit) {
      for (const std::string& program : startedPrograms(file.language, *text)) {
        follow(program, file.path, depth + 1);
      }
    }
  }

  // An executable file in binary format is not read as a whole.
  void follow(const std::string& program, const std::string& starter, unsigned depth) {
    constexpr std::size_t magic = 4;
    const std::string path = program.substr(1);
    if (seen_.size() > scriptLimit || !canBeScript(program) || !seen_.insert(path).second) {
      return;
    }
    if (!readFile(root_, path, magic).value_or("\x7f").starts_with('\x7f')) {
      examine({path, BootLanguage::shell}, "/" + starter, depth);
    }
  }

  const host::Root& root_;
  std::set<std::string> seen_;
  std::vector<Writer> found_;
};

std::string scan(const host::Root& root) {
  std::vector<std::string> lines;
  std::ranges::transform(Scan(root).run(), std::back_inserter(lines), toLine);
  return join(lines, "\n");
}

std::string settingsOf(const std::vector<Writer>& writers) {
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
    return " and keep the rest of the unit; then `systemctl daemon-reload`";
  }
  if (isIn("/cron") || isIn("/interfaces")) {
    return "";  // each line stands alone
  }
  return "; the command `:` in its place keeps a block valid that would become empty";
}

std::string remedyFor(const std::vector<Writer>& writers) {
  const Writer& first = writers.front();
  constexpr std::string_view library = "/lib/";
  const auto at = first.path.find(library);
  const bool hides = first.starter.empty() && at != std::string::npos &&
                     (first.path.starts_with("/usr/") || at == 0);
  return (hides ? editing(first.path.substr(1), "etc", first.path.substr(at + library.size()))
                : "in " + first.path + ", ") +
         "remove " + settingsOf(writers) + careFor(first.path);
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
  const std::string writers = view.derived("boot-scripts", [&] { return scan(view.root()); });
  for (const std::string& line : splitLines(writers)) {
    if (const auto writer = fromLine(line)) {
      files[writer->path].push_back(*writer);
    }
  }
  for (const auto& [path, found] : files) {
    const std::string& starter = found.front().starter;
    results.failed(path, expected,
                   settingsOf(found) + (starter.empty() ? "" : "; started by " + starter),
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

}  // namespace vfpass::doctor
