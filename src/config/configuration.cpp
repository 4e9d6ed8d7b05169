#include "vfpass/config/configuration.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <set>
#include <system_error>

#include "readers.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/file_descriptor.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/base/write_file.hpp"

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

namespace {

namespace fs = std::filesystem;

[[noreturn]] void throwExists(const std::string& vm, const std::string& place) {
  throw Error("VM " + printable(vm) + " has a mapping already: " + printable(place),
              "run `vfpass edit " + shellArgument(vm) + "`, or remove that file first",
              ExitCode::badInput);
}

void requireNoMapping(const Configuration& configuration, const NewMapping& mapping) {
  for (const auto& name : {mapping.name, mapping.vm}) {
    const std::string& uuid = mapping.uuid.empty() ? mapping.vm : mapping.uuid;
    if (const auto* found = findMapping(configuration, name, uuid)) {
      throwExists(mapping.vm, toString(found->vmPlace));
    }
    if (const auto* faulty = findFaulty(configuration, name, uuid)) {
      throwExists(mapping.vm, faulty->file + " (which has mistakes)");
    }
  }
}

// Names of domains may contain anything but a slash and a line feed (libvirt,
// virXMLCheckIllegalChars), and a hidden file is not a mapping.
void requireFileName(const NewMapping& mapping) {
  constexpr std::size_t longestFileName = 200;  // NAME_MAX is 255, and the draft needs some of it
  const std::string& name = mapping.name;
  if (name.empty() || name.front() == '.' || name.size() > longestFileName ||
      name.find_first_of(std::string_view("/\0", 2)) != std::string::npos) {
    throw Error("cannot name a file after VM " + printable(name),
                "save the mapping under another name that ends in .yaml; only its `vm:` counts",
                ExitCode::badInput);
  }
}

[[noreturn]] void throwUnfit(const fs::path& file, const std::vector<Problem>& problems,
                             const std::string& remedy) {
  std::vector<std::string> lines;
  std::ranges::transform(problems, std::back_inserter(lines),
                         [](const auto& problem) { return toString(problem); });
  throw Error("cannot write " + printable(file.string()) + ":\n  " + join(lines, "\n  "),
              mistakesOf(problems), remedy);
}

// A file in a directory that others can write to would be ignored.
void requireUsableFolders(const Configuration& configuration, const fs::path& file,
                          const std::set<std::string>& folders) {
  std::vector<Problem> problems;
  std::ranges::copy_if(
      configuration.problems, std::back_inserter(problems),
      [&](const Problem& problem) { return folders.contains(problem.place.file); });
  if (!problems.empty()) {
    throwUnfit(file, problems, "correct the directory, then run the command again");
  }
}

void createWithFolders(const fs::path& file, const std::string& text) {
  const fs::path folder = file.parent_path();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error && error.value() != EEXIST) {
    throw Error(
        "cannot create directory " + printable(folder.string()) + ": " + errnoText(error.value()),
        "run as root, or as the owner of the directory above it");
  }
  createDurably(file, text);
}

}  // namespace

// Other commands refuse both of two mappings that claim one device.
std::vector<Problem> problemsOfMapping(const fs::path& file, const std::string& text,
                                       Configuration configuration) {
  std::erase_if(configuration.mappings,
                [&](const Mapping& mapping) { return mapping.file == file.string(); });
  ProblemList list(file.string());
  configuration.mappings.push_back(readMapping(text, list));
  std::vector<Problem> problems = list.take();
  if (problems.empty()) {
    problems = crossCheck(configuration.mappings);
    std::erase_if(problems, [&](const Problem& problem) {
      return problem.place.file != file.string() &&
             problem.message.find(file.string()) == std::string::npos;
    });
  }
  return problems;
}

std::optional<Mapping> readProposed(const std::string& text) {
  ProblemList list("");
  Mapping mapping = readMapping(text, list);
  return list.take().empty() ? std::optional(std::move(mapping)) : std::nullopt;
}

fs::path writeNewMapping(const fs::path& directory, const NewMapping& mapping) {
  requireFileName(mapping);
  const Configuration configuration = loadConfiguration(directory);
  const fs::path file = directory / "vms" / (mapping.name + ".yaml");
  requireUsableFolders(configuration, file, {directory.string(), (directory / "vms").string()});
  requireNoMapping(configuration, mapping);
  if (const auto problems = problemsOfMapping(file, mapping.text, configuration);
      !problems.empty()) {
    throwUnfit(file, problems, "change the options, or the mappings that are named");
  }
  createWithFolders(file, mapping.text);
  return file;
}

fs::path writeNewHostPolicy(const fs::path& directory, const std::string& text) {
  const fs::path file = directory / "host.yaml";
  std::error_code unreadable;
  if (fs::exists(fs::symlink_status(file, unreadable))) {
    throw Error(printable(file.string()) + " exists already",
                "add the settings that `vfpass import --host` prints to it by hand",
                ExitCode::badInput);
  }
  requireUsableFolders(loadConfiguration(directory), file, {directory.string()});
  ProblemList list(file.string());
  readHostFile(text, list);
  if (const auto problems = list.take(); !problems.empty()) {
    throwUnfit(file, problems, "save what `vfpass import --host` prints, and correct it by hand");
  }
  createWithFolders(file, text);
  return file;
}

}  // namespace vfpass::config
