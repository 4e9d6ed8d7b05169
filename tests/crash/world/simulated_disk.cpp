#include "world/simulated_disk.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

namespace vfpass::crash {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t sector = 512;

// The index of the WAL is rebuilt after a boot, as if it had been lost.
bool isKept(const std::string& path) {
  return (path.starts_with("/var/lib/") || path.starts_with("/etc/vfpass/")) &&
         !path.ends_with("-shm");
}

std::string parentOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::size_t number(const std::string& text) { return std::strtoul(text.c_str(), nullptr, 10); }

bool flip(std::mt19937& random) { return (random() & 1U) != 0; }

void writeSectors(std::string& contents, std::size_t offset, const std::string& bytes,
                  std::mt19937& random) {
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = std::min(sector - (offset + at) % sector, bytes.size() - at);
    if (flip(random)) {
      contents.resize(std::max(contents.size(), offset + at + length));
      contents.replace(offset + at, length, bytes, at, length);
    }
    at += length;
  }
}

}  // namespace

std::shared_ptr<SimulatedDisk::File> SimulatedDisk::fileAt(const std::string& path) {
  const auto known = names_.find(path);
  if (known != names_.end()) {
    return known->second;
  }
  auto file = std::make_shared<File>(File{files_.read(path.substr(1)), {}});
  names_[path] = file;
  onDisk_[path] = file;
  return file;
}

void SimulatedDisk::apply(const NameChange& change, Names& names) {
  names.erase(change.removed);
  if (!change.added.empty()) {
    names[change.added] = change.file;
  }
}

void SimulatedDisk::change(const NameChange& change) {
  apply(change, names_);
  unsyncedNames_.push_back(change);
}

void SimulatedDisk::write(const Message& request) {
  const std::string& path = request.at(2);
  const std::size_t offset = number(request.at(3));
  if (request.at(1) == "ftruncate") {
    fileAt(path)->unsynced.push_back({offset, "", true});
    return;
  }
  std::string bytes = files_.readPart(path.substr(1), offset, number(request.at(4)));
  if (!bytes.empty()) {  // otherwise it failed
    fileAt(path)->unsynced.push_back({offset, std::move(bytes), false});
  }
}

// fsync of a file also keeps the name that it was created with, and those of its directories.
void SimulatedDisk::sync(const std::string& path) {
  const bool isDirectory = fs::is_directory(files_.root() / path.substr(1));
  if (isDirectory) {
    syncedDirectories_.push_back(path);
  } else {
    const auto file = fileAt(path);
    *file = {files_.read(path.substr(1)), {}};
  }
  keepNames([&](const NameChange& each) {
    const bool isIn = parentOf(each.added.empty() ? each.removed : each.added) == path;
    const bool creates = each.removed.empty() && (path + '/').starts_with(each.added + '/');
    return creates || (isDirectory && isIn);
  });
}

// With a change, all earlier ones of the same name are on the disk.
void SimulatedDisk::keepNames(const std::function<bool(const NameChange&)>& isSynced) {
  std::set<std::string> kept;
  std::vector<NameChange> changes;
  for (auto each = unsyncedNames_.rbegin(); each != unsyncedNames_.rend(); ++each) {
    if (isSynced(*each) || kept.contains(each->added) || kept.contains(each->removed)) {
      kept.insert({each->added, each->removed});
      kept.erase("");
      changes.push_back(std::exchange(*each, {}));
    }
  }
  std::for_each(changes.rbegin(), changes.rend(),
                [this](const NameChange& each) { apply(each, onDisk_); });
  std::erase_if(unsyncedNames_,
                [](const NameChange& each) { return each.added.empty() && each.removed.empty(); });
}

// What exists before the change has to be known, because it may survive it.
void SimulatedDisk::begin(const Message& request) {
  settle();
  if (!isKept(request.at(2)) && request.at(1) != "fsync") {
    return;
  }
  begun_ = request;
  for (std::size_t at = 2; at < request.size() && at < 4; ++at) {
    if (request[at].starts_with('/') &&
        fs::is_regular_file(files_.root() / request[at].substr(1))) {
      fileAt(request[at]);
    }
  }
}

void SimulatedDisk::settle() {
  if (!begun_) {
    return;
  }
  const Message request = *std::exchange(begun_, std::nullopt);
  const std::string& call = request.at(1);
  const std::string& path = request.at(2);
  if (call == "create" || call == "mkdir") {
    change({"", path, call == "create" ? std::make_shared<File>() : nullptr});
  } else if (call == "unlink") {
    change({path, "", nullptr});
  } else if (call == "rename") {
    change({path, request.at(3), fileAt(path)});
  } else if (call == "fsync" || call == "fdatasync") {
    sync(path);
  } else {
    write(request);
  }
}

bool SimulatedDisk::takeSync(const std::string& directory) {
  return std::erase(syncedDirectories_, directory) > 0;
}

std::string SimulatedDisk::contentsAfterFailure(const File& file, Survivors survivors,
                                                std::mt19937& random) {
  std::string contents = file.synced;
  for (const auto& write : file.unsynced) {
    if (survivors == Survivors::synced || !flip(random)) {
      continue;
    }
    if (write.truncates) {
      contents.resize(write.offset);
    } else {
      writeSectors(contents, write.offset, write.bytes, random);
    }
  }
  return contents;
}

void SimulatedDisk::replaceFiles(
    const std::map<std::string, std::optional<std::string>>& contents) {
  for (const auto& [path, file] : names_) {
    if (!contents.contains(path)) {
      files_.remove(path.substr(1));
    }
  }
  for (const auto& [path, text] : contents) {
    if (!fs::exists(files_.root() / parentOf(path).substr(1))) {
      continue;  // its directory was lost
    }
    const auto place = files_.root() / path.substr(1);
    if (text) {
      files_.write(path.substr(1), *text);
      fs::permissions(place, fs::perms::owner_read | fs::perms::owner_write);
    } else {
      fs::create_directory(place);
      fs::permissions(place, fs::perms::owner_all);
    }
  }
}

void SimulatedDisk::failPower(Survivors survivors, std::mt19937& random) {
  settle();
  const std::size_t kept =
      survivors == Survivors::synced ? 0 : random() % (unsyncedNames_.size() + 1);
  for (std::size_t at = 0; at < kept; ++at) {
    apply(unsyncedNames_[at], onDisk_);
  }
  std::map<std::string, std::optional<std::string>> contents;
  for (const auto& [path, file] : onDisk_) {
    contents[path] = file == nullptr
                         ? std::nullopt
                         : std::optional(contentsAfterFailure(*file, survivors, random));
  }
  replaceFiles(contents);
  for (const auto& [path, text] : contents) {
    if (text) {
      files_.remove(path.substr(1) + "-shm");
    }
  }
  names_.clear();
  onDisk_.clear();
  unsyncedNames_.clear();
}

}  // namespace vfpass::crash
