#include "help_format.hpp"

#include "examples.hpp"

namespace vfpass::cli {
namespace {

bool isFlag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

// Such as ` TEXT=/etc/vfpass` or ` TEXT ...`.
std::string valueText(const CLI::Option& option) {
  std::string text = option.get_type_name().empty() ? "" : " " + option.get_type_name();
  if (!option.get_default_str().empty()) {
    text += "=" + option.get_default_str();
  }
  if (option.get_expected_max() == CLI::detail::expected_max_vector_size) {
    text += " ...";
  }
  return text + (option.get_required() ? " REQUIRED" : "");
}

std::string namesOf(const char* title, const std::set<CLI::Option*>& options) {
  std::string text = options.empty() ? "" : std::string(" ") + title + ":";
  for (const CLI::Option* option : options) {
    text += " " + option->get_name();
  }
  return text;
}

}  // namespace

std::string HelpFormat::make_option_opts(const CLI::Option* option) const {
  if (!option->get_option_text().empty()) {
    return " " + option->get_option_text();
  }
  return (isFlag(*option) ? "" : valueText(*option)) + namesOf("Needs", option->get_needs()) +
         namesOf("Excludes", option->get_excludes());
}

std::string HelpFormat::make_footer(const CLI::App* app) const {
  const std::string examples = examplesOf(*app);
  return (examples.empty() ? "" : "Examples:\n" + examples + "\n") +
         CLI::Formatter::make_footer(app);
}

}  // namespace vfpass::cli
