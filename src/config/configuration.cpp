#include "vfpass/config/configuration.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <system_error>

#include "readers.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::config {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t mostFiles = 4096;

// Moves the problems to `problems`. Returns false if there were any.
bool takeProblems(ProblemList& list, std::vector<Problem>& problems) {
  std::vector<Problem> found = list.take();
  const bool sound = found.empty();
  problems.insert(problems.end(), std::make_move_iterator(found.begin()),
                  std::make_move_iterator(found.end()));
  return sound;
}

// True if the directory exists and can be trusted. A missing directory is not a problem.
bool folderIsUsable(const fs::path& folder, std::vector<Problem>& problems) {
  std::error_code error;
  if (fs::symlink_status(folder, error).type() == fs::file_type::not_found) {
    return false;
  }
  ProblemList list(folder.string());
  checkTrustedFolder(folder, list);
  return takeProblems(list, problems);
}

// Hidden files and editors' backups (`x.yaml~`) are ignored. `.yml` is reported: it is a likely
// mistake that would leave a VM without its mapping.
bool isMappingName(const fs::path& file, Configuration& configuration) {
  const std::string name = file.filename().string();
  if (name.starts_with('.')) {
    return false;
  }
  if (file.extension() == ".yml") {
    configuration.problems.push_back({{file.string(), 1, 1},
                                      "expected a name ending in .yaml",
                                      "rename it to " + file.stem().string() + ".yaml"});
    configuration.faulty.push_back({file.string(), ""});
  }
  return file.extension() == ".yaml";
}

std::vector<fs::path> listMappings(const fs::path& folder, Configuration& configuration) {
  auto& problems = configuration.problems;
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!isMappingName(entry->path(), configuration)) {
      continue;
    }
    if (files.size() >= mostFiles) {
      problems.push_back({{folder.string(), 1, 1},
                          "expected at most " + std::to_string(mostFiles) + " mappings, found more",
                          "remove unused mappings"});
      break;
    }
    files.push_back(entry->path());
  }
  if (error) {
    problems.push_back({{folder.string(), 1, 1},
                        "cannot list the directory: " + errnoText(error.value()),
                        "check its permissions"});
  }
  std::ranges::sort(files);
  return files;
}

void loadHostPolicy(const fs::path& file, Configuration& configuration) {
  std::error_code error;
  if (fs::symlink_status(file, error).type() == fs::file_type::not_found) {
    return;
  }
  ProblemList list(file.string());
  HostFile host;
  if (const auto text = readTrustedFile(file, list)) {
    host = readHostFile(*text, list);
  }
  if (takeProblems(list, configuration.problems)) {
    configuration.host = std::move(host.policy);
    configuration.softRoce = std::move(host.softRoce);
    configuration.accepted = std::move(host.accepted);
  }
}

void loadMapping(const fs::path& file, Configuration& configuration) {
  ProblemList list(file.string());
  Mapping mapping;
  if (const auto text = readTrustedFile(file, list)) {
    mapping = readMapping(*text, list);
  }
  if (takeProblems(list, configuration.problems)) {
    configuration.mappings.push_back(std::move(mapping));
  } else {
    configuration.faulty.push_back({file.string(), mapping.vm});
  }
}

bool isFor(const std::string& vm, const std::string& name, const std::optional<Uuid>& uuid) {
  return vm == name || (uuid && parseUuid(vm) == uuid);
}

constexpr std::size_t largestFile = 1U << 20U;

void report(ProblemList& problems, const std::string& message, const std::string& hint) {
  problems.add({}, message, hint);
}

bool checkOwnership(const struct stat& status, const std::string& path, ProblemList& problems) {
  const auto distrust = distrustOf(status, path);
  if (distrust) {
    report(problems, distrust->reason, distrust->remedy);
  }
  return !distrust;
}

void reportOpenError(int error, ProblemList& problems) {
  if (error == ELOOP) {  // O_NOFOLLOW and a symbolic link
    report(problems, "expected a regular file, found a symbolic link",
           "replace the link with a copy of the file");
  } else {
    report(problems, "cannot open the file: " + errnoText(error),
           error == ENOENT ? "check the path" : "check its permissions");
  }
}

std::optional<std::string> readAll(int descriptor, ProblemList& problems) {
  try {
    return readBounded(descriptor, largestFile);
  } catch (const ReadRefused& refused) {
    if (refused.error() == EFBIG) {
      report(problems, "expected at most 1 MiB, found more",
             "write one file for each virtual machine");
    } else {
      report(problems, std::string("cannot read the file: ") + refused.what(), {});
    }
    return std::nullopt;
  }
}

}  // namespace

CheckedFile loadFile(const fs::path& file) {
  CheckedFile checked;
  ProblemList list(file.string());
  if (const auto text = readTrustedFile(file, list)) {
    checked.isHostPolicy = isHostFile(*text) || file.filename() == "host.yaml";
    if (checked.isHostPolicy) {
      readHostFile(*text, list);
    } else {
      checked.mappings.push_back(readMapping(*text, list));
    }
  }
  if (!takeProblems(list, checked.problems)) {
    checked.mappings.clear();
  }
  return checked;
}

Configuration loadConfiguration(const fs::path& directory) {
  Configuration configuration;
  if (!folderIsUsable(directory, configuration.problems)) {
    return configuration;
  }
  loadHostPolicy(directory / "host.yaml", configuration);
  const fs::path folder = directory / "vms";
  if (folderIsUsable(folder, configuration.problems)) {
    for (const auto& file : listMappings(folder, configuration)) {
      loadMapping(file, configuration);
    }
  }
  sortByPlace(configuration.problems);
  return configuration;
}

const Mapping* findMapping(const Configuration& configuration, const std::string& name,
                           const std::string& uuidText) {
  const auto uuid = parseUuid(uuidText);
  const Mapping* found = nullptr;
  for (const auto& mapping : configuration.mappings) {
    if (!isFor(mapping.vm, name, uuid)) {
      continue;
    }
    if (found != nullptr) {
      throw Error("two mappings for VM " + printable(name) + ": " +
                      printable(toString(found->vmPlace)) + " and " +
                      printable(toString(mapping.vmPlace)),
                  mistakesOf({{found->vmPlace, "two mappings for VM " + name, ""},
                              {mapping.vmPlace, "two mappings for VM " + name, ""}}),
                  "remove one of them");
    }
    found = &mapping;
  }
  return found;
}

const FaultyFile* findFaulty(const Configuration& configuration, const std::string& name,
                             const std::string& uuidText) {
  const auto uuid = parseUuid(uuidText);
  const auto found = std::ranges::find_if(configuration.faulty, [&](const FaultyFile& each) {
    return isFor(each.vm.empty() ? fs::path(each.file).stem().string() : each.vm, name, uuid);
  });
  return found == configuration.faulty.end() ? nullptr : &*found;
}

std::optional<std::string> readTrustedFile(const std::filesystem::path& file,
                                           ProblemList& problems) {
  // Without O_NONBLOCK a FIFO would block here until a process opens it for writing.
  const FileDescriptor descriptor(
      ::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!descriptor) {
    reportOpenError(errno, problems);
    return std::nullopt;
  }
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0) {
    report(problems, "cannot read the file's owner: " + errnoText(errno), {});
    return std::nullopt;
  }
  if (!S_ISREG(status.st_mode)) {
    report(problems, "expected a regular file, found something else", "remove it");
    return std::nullopt;
  }
  if (!checkOwnership(status, file.string(), problems)) {
    return std::nullopt;
  }
  return readAll(descriptor.get(), problems);
}

bool checkTrustedFolder(const std::filesystem::path& folder, ProblemList& problems) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    report(problems, "cannot read the directory: " + errnoText(errno), "check its permissions");
    return false;
  }
  if (!S_ISDIR(status.st_mode)) {
    report(problems, "expected a directory, found a file", "remove it");
    return false;
  }
  return checkOwnership(status, folder.string(), problems);
}

}  // namespace vfpass::config
