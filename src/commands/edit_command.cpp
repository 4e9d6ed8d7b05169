#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <iterator>

#include "commands.hpp"
#include "run_editor.hpp"
#include "subject.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/own_process.hpp"
#include "vfpass/base/scope_guard.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/base/write_file.hpp"
#include "vfpass/config/configuration.hpp"
#include "vfpass/report/command_reports.hpp"

namespace vfpass::commands {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largestMapping = 1U << 20U;

/// The file as it was when the command read it.
struct OriginalFile {
  fs::path file;
  struct stat status {};
  std::string text;
};

std::string readMappingText(const fs::path& file) {
  try {
    return readBoundedFile(file, largestMapping);
  } catch (const ReadRefused& refused) {
    throw Error("cannot read " + printable(file.string()) + ": " + refused.what(),
                "check the file");
  }
}

// Nobody else may decide what root reads and replaces here.
OriginalFile openOriginal(const fs::path& file) {
  OriginalFile original{file, {}, {}};
  if (::lstat(file.c_str(), &original.status) != 0) {
    throw Error("cannot read " + printable(file.string()) + ": " + errnoText(errno),
                "check the file");
  }
  if (!S_ISREG(original.status.st_mode)) {
    throw Error(printable(file.string()) + ": expected a regular file, found something else",
                "replace it with a regular file", ExitCode::badInput);
  }
  if (const auto distrust = distrustOf(original.status, file.string())) {
    throw Error("cannot trust " + printable(file.string()) + ": " + distrust->reason,
                distrust->remedy, ExitCode::badInput);
  }
  if (::access(file.parent_path().c_str(), W_OK) != 0) {
    throw Error("cannot write " + printable(file.string()) + ": " + errnoText(errno),
                "run as root, or as the owner of " + printable(file.parent_path().string()));
  }
  original.text = readMappingText(file);
  return original;
}

bool isUnchanged(const OriginalFile& original) {
  struct stat now {};
  return ::lstat(original.file.c_str(), &now) == 0 && now.st_ino == original.status.st_ino &&
         now.st_mode == original.status.st_mode && readMappingText(original.file) == original.text;
}

fs::path fileToEdit(Session& session, const std::string& vm) {
  session.limitLibvirt(deadlines::libvirtAnswer);
  const MappingFile found = findMappingFile(session, vm);
  if (found.file.empty()) {
    throwNoMapping(session, vm, vm);
  }
  return found.file;
}

/// The copy that the user edits, in a directory of its own: editors keep backups and swap files
/// beside it.
class EditedCopy {
 public:
  explicit EditedCopy(const OriginalFile& original) {
    std::string pattern = fs::temp_directory_path() / "vfpass-edit-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw Error("cannot create directory " + printable(pattern) + ": " + errnoText(errno),
                  "set TMPDIR to a directory that exists and has free space");
    }
    folder_ = pattern;
    ScopeGuard discardFolder([&] { discard(); });
    createDurably(file(original), original.text);
    discardFolder.disarm();
    file_ = file(original);
  }

  [[nodiscard]] const fs::path& path() const { return file_; }
  /// Throws if the editor has left no regular file that can be a mapping.
  [[nodiscard]] std::string text() const {
    try {
      return readBoundedFile(file_, largestMapping);
    } catch (const ReadRefused& refused) {
      throw Error("cannot read what the editor has left at " + printable(file_.string()) + ": " +
                      refused.what(),
                  "run the command again; if that does not help, set EDITOR to another editor");
    }
  }
  /// Names of the files that the editor has left beside the copy.
  [[nodiscard]] std::vector<std::string> leftBeside() const {
    std::vector<std::string> names;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
      if (entry.path() != file_) {
        names.push_back(entry.path().filename().string());
      }
    }
    return names;
  }
  void discard() const {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

 private:
  [[nodiscard]] fs::path file(const OriginalFile& original) const {
    return folder_ / original.file.filename();
  }

  fs::path folder_;
  fs::path file_;
};

bool canAsk(const Session& session) {
  return !session.style().json && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
}

// A read(2) would be repeated after the signal that requests a stop.
void waitForInput() {
  constexpr int checkInterval = 200;  // ms
  pollfd input{STDIN_FILENO, POLLIN, 0};
  do {
    StopSignals::throwIfAsked();
  } while (::poll(&input, 1, checkInterval) <= 0);
}

// True: edit again; false: discard. Asks until it gets an answer; the end of the input discards.
bool wantsToEditAgain() {
  constexpr std::size_t longestAnswer = 256;
  BoundedLines answers(STDIN_FILENO, longestAnswer);
  for (;;) {
    std::cerr << "edit again (e), or discard the changes (q)? " << std::flush;
    waitForInput();
    const auto answer = answers.next();
    if (!answer || answer == "q") {
      return false;
    }
    if (answer == "e") {
      return true;
    }
  }
}

std::string linesOf(const std::vector<config::Problem>& problems) {
  std::string lines;
  for (const auto& problem : problems) {
    lines += "\n  " + toString(problem);
  }
  return lines;
}

std::string countedMistakes(const std::vector<config::Problem>& problems) {
  return std::to_string(problems.size()) + (problems.size() == 1 ? " mistake:" : " mistakes:");
}

[[noreturn]] void throwUnsaved(const OriginalFile& original, const EditedCopy& copy,
                               const std::vector<config::Problem>& problems) {
  throw Error("the edited mapping has " + countedMistakes(problems) + linesOf(problems) + "\n" +
                  printable(original.file.string()) + " is unchanged; the edited copy is " +
                  printable(copy.path().string()),
              config::mistakesOf(problems),
              "correct the mistakes in a new `vfpass edit`; the copy has your changes");
}

void requireUnchanged(const OriginalFile& original, const EditedCopy& copy) {
  if (!isUnchanged(original)) {
    throw Error(printable(original.file.string()) +
                    " has changed in the meantime and was left alone; the edited copy is " +
                    printable(copy.path().string()),
                "compare both (`diff -u " + shellArgument(original.file.string()) + " " +
                    shellArgument(copy.path().string()) + "`), then run `vfpass edit` again");
  }
}

/// The text to save; nullopt if the user discards it.
std::optional<std::string> editUntilValid(Session& session, const OriginalFile& original,
                                          const EditedCopy& copy) {
  const std::string editor = editorCommand();
  for (;;) {
    runEditor(editor, copy.path());
    std::string text = copy.text();
    const auto problems = config::problemsOfMapping(original.file, text, session.configuration());
    if (text == original.text || problems.empty()) {
      return text;
    }
    if (!canAsk(session)) {
      throwUnsaved(original, copy, problems);
    }
    std::cerr << "vfpass: the edited mapping has " << countedMistakes(problems)
              << printableLines(linesOf(problems)) << '\n';
    if (!wantsToEditAgain()) {
      return std::nullopt;
    }
  }
}

// What cannot be read may still be what the user wants to keep.
bool hasChanges(const OriginalFile& original, const EditedCopy& copy) {
  std::error_code missing;
  if (!fs::exists(copy.path(), missing)) {
    return false;
  }
  try {
    return copy.text() != original.text;
  } catch (const Error&) {
    return true;
  }
}

// An editor that a signal ends writes what is not saved into a file beside the copy: `.swp` of vim,
// `.save` of nano.
void discardUnchanged(Session& session, const OriginalFile& original, const EditedCopy& copy,
                      bool named) {
  const auto left = copy.leftBeside();
  if (!hasChanges(original, copy) && left.empty()) {
    copy.discard();
  } else if (!named) {
    session.note(printable(original.file.string()) + " is unchanged; the edited copy is " +
                 printable(copy.path().string()) +
                 (left.empty() ? ""
                               : "; changes that are not saved may be in " +
                                     printable(left.front()) + " beside it"));
  }
}

// The copy stays if the editor fails, or a signal ends the command, after the user has changed
// something.
std::optional<std::string> edited(Session& session, const OriginalFile& original,
                                  const EditedCopy& copy) {
  try {
    return editUntilValid(session, original, copy);
  } catch (const Error& error) {
    discardUnchanged(session, original, copy, !error.mistakes().empty());
    throw;
  } catch (const Cancelled&) {
    discardUnchanged(session, original, copy, false);
    throw;
  }
}

void save(const OriginalFile& original, const EditedCopy& copy, const std::string& text) {
  requireUnchanged(original, copy);
  try {
    replaceDurably(original.file, text, original.status);
  } catch (const Error& error) {
    throw Error(
        std::string(error.what()) + "; the edited copy is " + printable(copy.path().string()),
        error.remedy(), error.code());
  }
}

// The edited mapping may name another VM.
std::string savedNote(const OriginalFile& original, const std::string& text,
                      const std::string& vm) {
  const auto before = config::readProposed(original.text);
  const auto now = config::readProposed(text);
  const bool renamed = before && now && before->vm != now->vm;
  return "saved " + printable(original.file.string()) +
         (renamed ? " as the mapping of VM " + printable(now->vm) : "") + "; `vfpass plan " +
         shellArgument(renamed ? now->vm : vm) + "` shows what attach would change";
}

ExitCode endEdit(Session& session, const OriginalFile& original, const EditedCopy& copy,
                 bool changed, const std::string& note) {
  copy.discard();
  session.note(note);
  if (session.style().json) {
    report::writeEditedMapping(session.out(), original.file.string(), changed);
  }
  return ExitCode::done;
}

ExitCode edit(Session& session, const std::string& vm) {
  session.requireThisHost("edit");
  const OriginalFile original = openOriginal(fileToEdit(session, vm));
  const std::string file = printable(original.file.string());
  const StopSignals stop;
  const EditedCopy copy(original);
  const auto text = edited(session, original, copy);
  if (!text) {
    endEdit(session, original, copy, false, "changes discarded; " + file + " is unchanged");
    return ExitCode::badInput;
  }
  if (*text == original.text) {
    return endEdit(session, original, copy, false, file + ": no changes");
  }
  save(original, copy, *text);
  return endEdit(session, original, copy, true, savedNote(original, *text, vm));
}

}  // namespace

void addEdit(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "edit", "Edit a VM's mapping in $VISUAL or $EDITOR, and check it before it is saved");
  const auto vm = std::make_shared<std::string>();
  command->add_option("vm", *vm, "Domain name or UUID")->type_name("VM")->required();
  command->callback(
      [&runner, vm] { runner = [vm](Session& session) { return edit(session, *vm); }; });
}

}  // namespace vfpass::commands
