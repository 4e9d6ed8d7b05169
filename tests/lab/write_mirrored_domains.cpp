// write-mirrored-domains DIRECTORY: writes the guests of mirroredHosts() as HOST-RAILS.xml.
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "unit/topology/mirror_support.hpp"

namespace {

void writeAll(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  for (const auto& each : vfpass::topology::mirroredHosts()) {
    std::ofstream file(directory / (each.host + "-" + std::to_string(each.rails) + ".xml"));
    file.exceptions(std::ofstream::failbit | std::ofstream::badbit);
    file << vfpass::topology::mirroredDomain(each) << std::flush;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write-mirrored-domains DIRECTORY\n";
    return 2;
  }
  try {
    writeAll(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "write-mirrored-domains: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
