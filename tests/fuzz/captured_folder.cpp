// The tree of a snapshot, one entry per line: f, l or d, and the path. Links lead out of the tree.
// covers: src/capture/captured_folder.cpp -writeFolder
#include "vfpass/capture/captured_folder.hpp"

#include <algorithm>
#include <filesystem>

#include "fake/temporary_folder.hpp"
#include "fuzz/target.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::fuzz {
namespace {

namespace fs = std::filesystem;
using Kind = host::RecordedEntry::Kind;

host::RecordedEntry entryOf(char kind) {
  return kind == 'l'   ? host::RecordedEntry{Kind::link, ".."}
         : kind == 'd' ? host::RecordedEntry{Kind::directory, ""}
                       : host::RecordedEntry{Kind::file, "content"};
}

// Absolute paths name the parent of the tree, so that a write outside is seen and not lost in /.
std::string pathIn(std::string_view line, const fs::path& outside) {
  const std::string path(line.substr(1));
  return path.starts_with('/') ? outside.string() + path : path;
}

}  // namespace

void runTarget(std::string_view input) {
  constexpr std::size_t most = 16;
  const fake::TemporaryFolder outside;
  const capture::CapturedFolder tree(outside.path() / "tree");
  auto lines = splitLines(input);
  lines.resize(std::min(lines.size(), most));
  for (const std::string& line : lines) {
    if (line.size() > 1 && line.find('\0') == std::string::npos) {
      accepted([&] {
        tree.write(pathIn(line, outside.path()), entryOf(line.front()));
        return true;
      });
    }
  }
  require(std::distance(fs::directory_iterator(outside.path()), {}) == 1,
          "nothing is written outside the tree");
}

}  // namespace vfpass::fuzz
