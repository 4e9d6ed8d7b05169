#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "commands.hpp"
#include "usage_error.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/check_pages.hpp"

namespace vfpass::commands {
namespace {

Error unknownCheck(const std::string& key, const std::vector<report::CheckPage>& pages) {
  std::vector<std::string> keys;
  std::ranges::transform(pages, std::back_inserter(keys), &report::CheckPage::key);
  const auto near = similarWord(key, keys);
  return Error("no check of doctor or verify has the name " + printable(key),
               near ? "did you mean `vfpass explain " + *near + "`?"
                    : "run `vfpass explain` to list the checks",
               ExitCode::badInput);
}

ExitCode explain(Session& session, const std::string& key) {
  const auto pages = report::allCheckPages();
  if (key.empty()) {
    report::writeCheckList(session.out(), pages, session.style());
    return ExitCode::done;
  }
  std::vector<report::CheckPage> asked;
  std::ranges::copy_if(pages, std::back_inserter(asked),
                       [&](const report::CheckPage& page) { return page.key == key; });
  if (asked.empty()) {
    throw unknownCheck(key, pages);
  }
  report::writeCheckPages(session.out(), asked, session.style());
  return ExitCode::done;
}

}  // namespace

void addExplain(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "explain",
      "Explain a check of doctor or verify: cause, method, observer, remedy, and where\n"
      "it is documented");
  const auto key = std::make_shared<std::string>();
  command->add_option("check", *key, "Its key, such as pf-link (default: list all checks)")
      ->type_name("CHECK");
  command->callback(
      [&runner, key] { runner = [key](Session& session) { return explain(session, *key); }; });
}

}  // namespace vfpass::commands
