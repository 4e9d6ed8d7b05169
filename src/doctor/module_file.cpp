#include "module_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

// Not libkmod: it opens modules by path only, so links in a captured tree could lead out of it.
// The end of every signed module (include/linux/module_signature.h).
constexpr std::string_view marker = "~Module signature appended~\n";

// Where DKMS and OFED's own packages install modules.
constexpr std::array folders{"updates/dkms", "updates", "extra", "extra/mlnx-ofa_kernel/compat"};

struct ModuleFile {
  FileDescriptor file;
  bool compressed = false;
  struct stat status {};
};

std::optional<ModuleFile> find(const View& view, std::string module) {
  const host::Root& root = view.root();
  const std::string release = root.readText("proc/sys/kernel/osrelease").value_or("");
  if (release.empty() || release.find('/') != std::string::npos) {
    return std::nullopt;
  }
  const auto sameName = [&](std::string name) {
    std::ranges::replace(name, '-', '_');
    return name == module + ".ko" || name.starts_with(module + ".ko.");
  };
  for (const char* folder : folders) {
    const std::string path = "lib/modules/" + release + "/" + folder;
    for (const std::string& name : root.list(path)) {
      ModuleFile found{root.open(path + "/" + name, O_RDONLY | O_NONBLOCK), !name.ends_with(".ko")};
      if (sameName(name) && found.file && ::fstat(found.file.get(), &found.status) == 0 &&
          S_ISREG(found.status.st_mode)) {
        return found;
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> readEnd(const ModuleFile& module) {
  const auto size = static_cast<std::size_t>(module.status.st_size);
  if (module.compressed || size < marker.size()) {
    return std::nullopt;
  }
  return host::readBytes(module.file.get(), size - marker.size(), marker.size());
}

}  // namespace

Signature signatureOf(const View& view, const std::string& module) {
  const auto answer =
      view.answer("modules/" + module + "/signature", [&]() -> std::optional<std::string> {
        const auto found = find(view, module);
        const auto end = found ? readEnd(*found) : std::nullopt;
        return end ? std::optional<std::string>(*end == marker ? "there" : "none") : std::nullopt;
      });
  return answer == "there"  ? Signature::present
         : answer == "none" ? Signature::absent
                            : Signature::unknown;
}

std::optional<std::uint64_t> buildTime(const View& view, const std::string& module) {
  const auto answer =
      view.answer("modules/" + module + "/built", [&]() -> std::optional<std::string> {
        const auto found = find(view, module);
        return found ? std::optional(std::to_string(found->status.st_mtim.tv_sec)) : std::nullopt;
      });
  return answer ? parseNumber(*answer) : std::nullopt;
}

}  // namespace vfpass::doctor
