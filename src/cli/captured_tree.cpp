#include "captured_tree.hpp"

#include "vfpass/doctor/doctor.hpp"

namespace vfpass::cli {
namespace {

using Kind = host::RecordedEntry::Kind;

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

}  // namespace vfpass::cli
