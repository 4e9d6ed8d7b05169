#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace vfpass::cli {

/// The examples in a command's help, one on each line; empty for the program itself.
std::string examplesOf(const CLI::App& command);

}  // namespace vfpass::cli
