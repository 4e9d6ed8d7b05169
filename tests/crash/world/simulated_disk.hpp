#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "worker/wire.hpp"
#include "world/host_files.hpp"

namespace vfpass::crash {

/// What a power failure may leave of the files below /var/lib and /etc/vfpass. Of a write that was
/// not synced, each sector may be on the disk or not, whatever happened to earlier and later
/// writes. fsync(2) of a file keeps its contents and its name; other changes of names survive in
/// their order up to some point, or up to the last fsync of the directory. ext4, XFS and Btrfs
/// promise at least this.
class SimulatedDisk {
 public:
  /// All files that exist now are on the disk.
  explicit SimulatedDisk(HostFiles files) : files_(std::move(files)) {}

  /// A worker is about to change a file, and its previous change is done.
  void begin(const Message& request);
  /// The last change that was begun is done.
  void settle();

  enum class Survivors { synced, random };
  /// Replaces the files by what may be left after a power failure. `synced`: nothing else is.
  void failPower(Survivors survivors, std::mt19937& random);

  /// Whether this directory was synced since the last call.
  bool takeSync(const std::string& directory);

 private:
  struct Write {
    std::size_t offset = 0;
    std::string bytes;
    bool truncates = false;  // to the length `offset`
  };
  struct File {
    std::string synced;
    std::vector<Write> unsynced;
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;  // of files; null: a directory
  struct NameChange {
    std::string removed;  // empty: none
    std::string added;
    std::shared_ptr<File> file;
  };

  std::shared_ptr<File> fileAt(const std::string& path);
  void change(const NameChange& change);
  void write(const Message& request);
  void sync(const std::string& path);
  void keepNames(const std::function<bool(const NameChange&)>& isSynced);
  static void apply(const NameChange& change, Names& names);
  static std::string contentsAfterFailure(const File& file, Survivors survivors,
                                          std::mt19937& random);
  void replaceFiles(const std::map<std::string, std::optional<std::string>>& contents);

  HostFiles files_;
  Names names_;   // as the workers see them
  Names onDisk_;  // the names that are synced
  std::vector<NameChange> unsyncedNames_;
  std::vector<std::string> syncedDirectories_;
  std::optional<Message> begun_;
};

}  // namespace vfpass::crash
