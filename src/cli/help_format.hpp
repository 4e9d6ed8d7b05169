#pragma once

#include <CLI/CLI.hpp>

namespace vfpass::cli {

/// Help texts that are the same whatever release of CLI11 is compiled in: from 2.4 on its own
/// formatter writes a default as `[value] ` instead of `=value`, and one for flags as well.
class HelpFormat : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
};

}  // namespace vfpass::cli
