#include "vfpass/state/baselines.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "state_folder.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/scope_guard.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::state {
namespace {

namespace fs = std::filesystem;

// A host has far fewer PFs.
constexpr std::size_t mostBaselines = 1024;

}  // namespace

void keepBaseline(const fs::path& stateDirectory, const PciAddress& pf, const std::string& text) {
  makePrivateFolder(stateDirectory);
  const fs::path folder = makePrivateFolder(stateDirectory / "baselines");
  const fs::path partial = folder / (toString(pf) + ".new");
  std::error_code ignored;
  fs::remove(partial, ignored);  // left by a process that was killed
  const ScopeGuard removePartial([&] { fs::remove(partial, ignored); });
  writePrivateFile(partial, text);
  const fs::path file = folder / (toString(pf) + ".json");
  if (std::rename(partial.c_str(), file.c_str()) != 0) {
    throw systemFailure("cannot save " + printable(file.string()), errno, folder);
  }
  syncFolder(folder);
}

std::vector<std::string> keptBaselines(const fs::path& stateDirectory) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(stateDirectory / "baselines", ignored)) {
    if (files.size() < mostBaselines && entry.path().extension() == ".json") {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  std::vector<std::string> texts;
  for (const fs::path& file : files) {
    try {
      texts.push_back(readBoundedFile(file, largestBaseline));
    } catch (const ReadRefused&) {  // as without a baseline: another measurement replaces it
      continue;
    }
  }
  return texts;
}

}  // namespace vfpass::state
