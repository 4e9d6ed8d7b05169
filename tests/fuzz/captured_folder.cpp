// The tree of a snapshot, one entry per line: f, l or d, and the path. Links lead out of the tree.
// The first line can name what is already in its place.
// covers: src/doctor/capture/captured_tree.cpp -writeFolder -keptOf -isKept -isKernelFile
// -firstProcessor
#include "vfpass/capture/captured_tree.hpp"

#include <unistd.h>

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

// What somebody else may have created where the tree is to be written; `p`, and a kind.
void prepare(char kind, const fs::path& place) {
  if (kind == 'f' || kind == 'b') {
    writeFile(place, "content");
  } else if (kind == 'l') {
    fs::create_symlink("..", place);
  } else {
    fs::create_directory(place);
    fs::permissions(place, kind == 'w' ? fs::perms::all : fs::perms::owner_all);
  }
  if (kind == 'd') {
    writeFile(place / "file", "content");
  }
  if (kind == 'o') {
    ::chown(place.c_str(), 65534, 65534);  // only root can, and only for root does it matter
  }
}

fs::path placeIn(const fs::path& outside, char kind) {
  return kind == 'n'   ? outside / std::string(300, 'n')  // too long
         : kind == 'b' ? outside / "tree" / "below"       // below a file
                       : outside / "tree";
}

void writeEntries(const std::vector<std::string>& lines, const fs::path& outside,
                  const fs::path& place) {
  const capture::CapturedFolder tree(place);
  for (const std::string& line : lines) {
    if (line.size() > 1 && line.front() != 'p' && line.find('\0') == std::string::npos) {
      accepted([&] {
        tree.write(pathIn(line, outside), entryOf(line.front()));
        return true;
      });
    }
  }
}

}  // namespace

void runTarget(std::string_view input) {
  constexpr std::size_t most = 16;
  const fake::TemporaryFolder outside(fastFolder());
  auto lines = splitLines(input);
  lines.resize(std::min(lines.size(), most));
  const bool isTaken = !lines.empty() && lines.front().size() == 2 && lines.front().front() == 'p';
  const char kind = isTaken ? lines.front().back() : '-';
  if (isTaken && kind != 'n') {
    prepare(kind, outside.path() / "tree");
  }
  accepted([&] {
    writeEntries(lines, outside.path(), placeIn(outside.path(), kind));
    return true;
  });
  require(std::distance(fs::directory_iterator(outside.path()), {}) == (kind == 'n' ? 0 : 1),
          "nothing is written outside the tree");
}

}  // namespace vfpass::fuzz
