#include "vfpass/config/new_mapping.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <system_error>

#include "readers.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/base/write_file.hpp"

namespace vfpass::config {
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
// virXMLCheckIllegalChars), and a hidden file is no mapping.
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
