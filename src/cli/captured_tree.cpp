#include "captured_tree.hpp"

#include <cerrno>
#include <fstream>
#include <system_error>

#include "vfpass/base/text.hpp"
#include "vfpass/doctor/doctor.hpp"
#include "vfpass/error.hpp"

namespace vfpass::cli {
namespace {

using Kind = host::RecordedEntry::Kind;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& reason) {
  throw Error("cannot write " + printable(path.native()) + ": " + reason,
              "see that there is room and that you may write there");
}

bool isKept(const std::string& path) {
  return !path.starts_with("proc/") || path == "proc/cpuinfo" || path == "proc/cmdline" ||
         path.starts_with("proc/sys/");
}

// Whatever else there is was written by people, and may hold what is nobody's business. Answers in
// vfpass/ are reduced by who asked.
bool isKernelFile(const std::string& path) {
  return path.starts_with("sys/") || path.starts_with("proc/sys/") || path.starts_with("vfpass/");
}

std::string firstProcessor(const std::string& text) {
  const auto end = text.find("\n\n");
  return end == std::string::npos ? text : text.substr(0, end + 1);
}

void requireEmpty(const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::exists(folder, error) && (!std::filesystem::is_directory(folder, error) ||
                                                 !std::filesystem::is_empty(folder, error))) {
    throw Error(printable(folder.native()) + " is there already and is no empty folder",
                "name a new folder, so that no older snapshot is mixed in", ExitCode::badInput);
  }
}

void writeEntry(const std::filesystem::path& path, const host::RecordedEntry& entry) {
  std::error_code error;
  std::filesystem::create_directories(entry.kind == Kind::directory ? path : path.parent_path(),
                                      error);
  if (!error && entry.kind == Kind::link) {
    std::filesystem::create_symlink(entry.content, path, error);
  }
  if (error) {
    fail(path, error.message());
  }
  if (entry.kind == Kind::file) {
    std::ofstream file(path, std::ios::binary);
    file << entry.content;
    if (!file.flush()) {
      fail(path, errnoText(errno));
    }
  }
}

}  // namespace

CapturedTree keptOf(const host::Recording& recording) {
  CapturedTree tree;
  for (const auto& [path, entry] : recording.entries()) {
    if (!isKept(path)) {
      continue;
    }
    host::RecordedEntry kept = entry;
    if (path == "proc/cpuinfo") {
      kept.content = firstProcessor(kept.content);
    } else if (kept.kind == Kind::file && !isKernelFile(path)) {
      kept.content = doctor::essence(path, kept.content);
    }
    // A file without any of our settings is none of ours, its name included; of some it matters
    // that they are there.
    if (!kept.content.empty() || entry.content.empty() || path.starts_with("etc/opensm/") ||
        path.ends_with("/openibd.service")) {
      tree.emplace(path, kept);
    }
  }
  tree.erase("proc");
  return tree;
}

void writeFolder(const CapturedTree& tree, const std::filesystem::path& folder) {
  requireEmpty(folder);
  for (const auto& [path, entry] : tree) {
    writeEntry(folder / path, entry);
  }
}

}  // namespace vfpass::cli
