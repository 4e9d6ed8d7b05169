#pragma once

#include <CLI/CLI.hpp>

namespace vfpass::commands {

/// Formats help texts the same way with every release of CLI11: since 2.4 its own formatter writes
/// a default as `[value] ` instead of `=value`, and writes one for flags too.
class HelpFormat : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
  /// Without the empty lines that CLI11 writes for groups that it leaves out.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  /// Examples, then the exit codes.
  std::string make_footer(const CLI::App* app) const override;
};

}  // namespace vfpass::commands
