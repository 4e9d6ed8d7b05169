// The tree of a snapshot, as a tar file: names, contents and link targets of the host. One entry
// per line: f, l or d, the path, and after `=` the content or the target. libarchive has to read
// the tree that was written. The first line can limit the size of the file.
// covers: src/doctor/capture/captured_tar.cpp
#include <archive.h>
#include <archive_entry.h>
#include <sys/resource.h>

#include <csignal>
#include <memory>

#include "fake/temporary_folder.hpp"
#include "fuzz/target.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/capture/captured_tree.hpp"

// libarchive does not free the buffer of an archive that it could not write.
extern "C" const char* __lsan_default_suppressions();

extern "C" const char* __lsan_default_suppressions() { return "leak:libarchive.so"; }

namespace vfpass::fuzz {
namespace {

namespace fs = std::filesystem;
using Kind = host::RecordedEntry::Kind;

// Names that a file of the host can have. An archive has no other form of them.
bool isPath(const std::string& path) {
  return !path.empty() && path.front() != '/' && path.back() != '/' &&
         path.find("//") == std::string::npos && path.find('\0') == std::string::npos;
}

capture::CapturedTree treeOf(std::string_view input) {
  capture::CapturedTree tree;
  for (const std::string& line : splitLines(input)) {
    const auto end = std::min(line.find('='), line.size());
    const std::string content = line.substr(std::min(end + 1, line.size()));
    const std::string path = line.empty() ? line : line.substr(1, end - 1);
    if (!isPath(path)) {
      continue;
    }
    if (line.front() == 'd') {
      tree[path] = {Kind::directory, ""};
    } else if (line.front() == 'f') {
      tree[path] = {Kind::file, content};
    } else if (!content.empty() && content.find('\0') == std::string::npos) {
      tree[path] = {Kind::link, content};
    }
  }
  return tree;
}

std::string textOf(const char* text) { return text == nullptr ? "" : text; }

std::string dataOf(archive* tar, archive_entry* header) {
  std::string data(static_cast<std::size_t>(archive_entry_size(header)), '\0');
  require(archive_read_data(tar, data.data(), data.size()) == static_cast<la_ssize_t>(data.size()),
          "the archive has the whole content of a file");
  return data;
}

void addEntry(archive* tar, archive_entry* header, capture::CapturedTree& tree) {
  std::string path = textOf(archive_entry_pathname(header));
  switch (archive_entry_filetype(header)) {
    case AE_IFDIR:
      path.resize(path.size() - (path.ends_with('/') ? 1 : 0));
      tree[path] = {Kind::directory, ""};
      break;
    case AE_IFLNK:
      tree[path] = {Kind::link, textOf(archive_entry_symlink(header))};
      break;
    default:
      tree[path] = {Kind::file, dataOf(tar, header)};
  }
}

capture::CapturedTree readTar(const fs::path& file) {
  const std::unique_ptr<archive, decltype(&archive_read_free)> tar(archive_read_new(),
                                                                   &archive_read_free);
  archive_read_support_format_tar(tar.get());
  capture::CapturedTree tree;
  require(archive_read_open_filename(tar.get(), file.c_str(), 10240) == ARCHIVE_OK,
          "the archive can be opened");
  archive_entry* header = nullptr;
  int result = ARCHIVE_OK;
  while ((result = archive_read_next_header(tar.get(), &header)) == ARCHIVE_OK) {
    addEntry(tar.get(), header, tree);
  }
  require(result == ARCHIVE_EOF, "the archive can be read to its end");
  return tree;
}

bool isSame(const capture::CapturedTree& one, const capture::CapturedTree& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](const auto& left, const auto& right) {
                      return left.first == right.first && left.second.kind == right.second.kind &&
                             left.second.content == right.second.content;
                    });
}

bool canWrite(const capture::CapturedTree& tree, const fs::path& file) {
  return accepted([&] {
           capture::writeTar(tree, file);
           return true;
         })
      .has_value();
}

// As on a full disk.
bool canWriteOneBlock(const capture::CapturedTree& tree, const fs::path& file) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit oneBlock{512, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &oneBlock);
  const bool written = canWrite(tree, file);
  ::setrlimit(RLIMIT_FSIZE, &before);
  return written;
}

}  // namespace

void runTarget(std::string_view input) {
  static const fake::TemporaryFolder folder(fastFolder());
  const fs::path file = folder.path() / "tree.tar";
  const auto tree = treeOf(input);
  fs::remove(file);
  require(canWrite(tree, file), "every tree can be written");
  require(isSame(readTar(file), tree), "an archive that is read again is the tree");
  require(!canWrite(tree, file), "no file is replaced");
  if (input.starts_with("one block\n")) {
    fs::remove(file);
    require(!canWriteOneBlock(tree, file), "an archive that is cut off is reported");
  }
}

}  // namespace vfpass::fuzz
