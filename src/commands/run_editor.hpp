#pragma once

#include <filesystem>
#include <string>

namespace vfpass::commands {

/// The user's editor: $VISUAL, otherwise $EDITOR, otherwise `editor`, which Debian's alternatives
/// link to one, otherwise `vi`.
std::string editorCommand();

/// Runs the editor, which may have arguments as with `code --wait`, on the file and waits for it.
/// Throws Error if it cannot be run, or ends with another status than 0.
void runEditor(const std::string& editor, const std::filesystem::path& file);

}  // namespace vfpass::commands
