#include "support.hpp"

#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "readers.hpp"

namespace vfpass::config {

std::vector<std::string> lines(const std::vector<Problem>& problems) {
  std::vector<std::string> texts;
  for (const auto& problem : problems) {
    texts.push_back(toString(problem));
  }
  return texts;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "vfpass-config-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("mkdtemp failed");
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TemporaryFolder::write(const std::string& name,
                                             const std::string& text) const {
  const auto file = path_ / name;
  for (auto folder = file.parent_path(); folder != path_; folder = folder.parent_path()) {
    std::filesystem::create_directories(folder);
    ::chmod(folder.c_str(), 0755);
  }
  std::ofstream(file, std::ios::binary) << text;
  ::chmod(file.c_str(), 0644);
  return file;
}

std::string readWhole(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    throw std::runtime_error("cannot read " + file.string());
  }
  return {std::istreambuf_iterator<char>(stream), {}};
}

ReadMapping readMappingText(const std::string& text) {
  ProblemList list("m.yaml");
  ReadMapping result;
  result.mapping = readMapping(text, list);
  result.problems = lines(list.take());
  return result;
}

std::vector<std::string> hostProblems(const std::string& text) {
  ProblemList list("host.yaml");
  readHostFile(text, list);
  return lines(list.take());
}

std::string withVf(const std::string& rest, const std::string& top) {
  std::string text =
      "version: 1\nvm: train0\n" + top + "vfs:\n  - name: rail0\n    pf: {netdev: ens1}\n";
  std::istringstream stream(rest);
  for (std::string line; std::getline(stream, line);) {
    text += "    " + line + "\n";
  }
  return text;
}

}  // namespace vfpass::config
