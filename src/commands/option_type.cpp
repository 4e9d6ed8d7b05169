#include "option_type.hpp"

#include <algorithm>
#include <array>
#include <regex>

namespace vfpass::commands {
namespace {

struct TypeForm {
  std::regex form;
  const char* readable;
};

}  // namespace

// Also `UINT:SIZE [b, kb(=1024b), ...]` and `NUMBER:POSITIVE`.
std::string readableType(const std::string& type) {
  static const std::array forms{
      TypeForm{std::regex(R"([A-Z]+:\{(.*)\})"), "$1"},
      TypeForm{std::regex(R"(([A-Z]+):[A-Z]+ in \[(\S+) - (\S+)\])"), "$1 ($2-$3)"},
      TypeForm{std::regex(R"([A-Z]+:(SIZE).*)"), "$1"},
      TypeForm{std::regex(R"(([A-Z]+):[A-Z]+)"), "$1"}};
  for (const TypeForm& each : forms) {
    if (std::regex_match(type, each.form)) {
      std::string readable = std::regex_replace(type, each.form, each.readable);
      std::ranges::replace(readable, ',', '|');
      return readable;
    }
  }
  return type;
}

}  // namespace vfpass::commands
