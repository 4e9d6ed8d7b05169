#include "vfpass/capture/captured_tree.hpp"

#include "vfpass/doctor/doctor.hpp"

namespace vfpass::capture {
namespace {

using Kind = host::RecordedEntry::Kind;

bool isKept(const std::string& path) {
  return !path.starts_with("proc/") || path == "proc/cpuinfo" || path == "proc/cmdline" ||
         path.starts_with("proc/sys/");
}

// All other files were written by people and may contain private data. Files below vfpass/ are
// already reduced where they are created.
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
      kept.content = doctor::knownSettings(path, kept.content);
    }
    // A file without any setting that doctor looks for is left out, so that not even its name is
    // recorded. For some files their mere existence matters.
    if (!kept.content.empty() || entry.content.empty() ||
        path.find("opensm") != std::string::npos || path.ends_with("/openibd.service")) {
      tree.emplace(path, kept);
    }
  }
  tree.erase("proc");
  return tree;
}

}  // namespace vfpass::capture
