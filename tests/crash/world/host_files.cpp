#include "world/host_files.hpp"

#include <fstream>
#include <sstream>
#include <utility>

namespace vfpass::crash {

namespace fs = std::filesystem;

namespace {

// Copies of a host have the same files in sysfs until one of them writes, because most of its files
// are there and few of them change. Only HostFiles writes there.
bool isShared(const std::string& name) { return name == "sys" || name.starts_with("sys/"); }

void copyAll(const fs::path& from, const fs::path& to, bool shared) {
  fs::copy(from, to,
           fs::copy_options::recursive | fs::copy_options::copy_symlinks |
               (shared ? fs::copy_options::create_hard_links : fs::copy_options::none));
}

}  // namespace

void HostFiles::write(const std::string& name, const std::string& text) const {
  fs::create_directories((root_ / name).parent_path());
  if (isShared(name)) {
    fs::remove(root_ / name);
    changed_->insert(name);
  }
  std::ofstream(root_ / name) << text;
}

std::string HostFiles::read(const std::string& name) const {
  std::ostringstream text;
  text << std::ifstream(root_ / name).rdbuf();
  return text.str();
}

std::string HostFiles::readPart(const std::string& name, std::size_t offset,
                                std::size_t length) const {
  std::string text(length, '\0');
  std::ifstream file(root_ / name);
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(text.data(), static_cast<std::streamsize>(length));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

void HostFiles::copyTo(const fs::path& other) const {
  fs::remove_all(other);
  fs::create_directory(other);
  for (const auto& entry : fs::directory_iterator(root_)) {
    const std::string name = entry.path().filename();
    copyAll(entry, other / name, isShared(name));
  }
}

void HostFiles::restore(const HostFiles& original) const {
  for (const auto& entry : fs::directory_iterator(root_)) {
    if (!isShared(entry.path().filename())) {
      fs::remove_all(entry);
    }
  }
  for (const auto& entry : fs::directory_iterator(original.root_)) {
    const std::string name = entry.path().filename();
    if (!isShared(name)) {
      copyAll(entry, root_ / name, false);
    }
  }
  for (const auto& name : std::exchange(*changed_, {})) {
    restoreShared(name, original);
  }
}

// With a name that is new, its directories may be new as well.
void HostFiles::restoreShared(const std::string& name, const HostFiles& original) const {
  fs::path place = name;
  while (!original.exists(place.parent_path())) {
    place = place.parent_path();
  }
  fs::remove_all(root_ / place);
  if (original.exists(place)) {
    fs::create_directories((root_ / place).parent_path());
    copyAll(original.root_ / place, root_ / place, true);
  }
}

bool HostFiles::exists(const std::string& name) const {
  return fs::exists(fs::symlink_status(root_ / name));
}

void HostFiles::remove(const std::string& name) const {
  fs::remove_all(root_ / name);
  if (isShared(name)) {
    changed_->insert(name);
  }
}

void HostFiles::link(const std::string& name, const std::string& target) const {
  const auto place = root_ / name;
  fs::create_directories(place.parent_path());
  fs::remove(place);
  if (isShared(name)) {
    changed_->insert(name);
  }
  fs::create_symlink(fs::path(target).lexically_relative(fs::path(name).parent_path()), place);
}

std::string HostFiles::directoryOf(const std::string& function) const {
  const fs::path devices = "sys/bus/pci/devices";
  return (devices / fs::read_symlink(root_ / devices / function)).lexically_normal().string();
}

std::string HostFiles::driverOf(const std::string& function) const {
  const std::string link = directoryOf(function) + "/driver";
  return exists(link) ? fs::read_symlink(root_ / link).filename().string() : "";
}

bool HostFiles::hasFunction(const std::string& function) const {
  return exists("sys/bus/pci/devices/" + function);
}

}  // namespace vfpass::crash
