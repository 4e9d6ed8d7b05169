#include "world/host_files.hpp"

#include <fstream>
#include <sstream>

namespace vfpass::crash {

namespace fs = std::filesystem;

void HostFiles::write(const std::string& name, const std::string& text) const {
  fs::create_directories((root_ / name).parent_path());
  std::ofstream(root_ / name) << text;
}

std::string HostFiles::read(const std::string& name) const {
  std::ostringstream text;
  text << std::ifstream(root_ / name).rdbuf();
  return text.str();
}

bool HostFiles::exists(const std::string& name) const {
  return fs::exists(fs::symlink_status(root_ / name));
}

void HostFiles::remove(const std::string& name) const { fs::remove_all(root_ / name); }

void HostFiles::link(const std::string& name, const std::string& target) const {
  const auto place = root_ / name;
  fs::create_directories(place.parent_path());
  fs::remove(place);
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
