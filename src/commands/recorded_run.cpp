#include "recorded_run.hpp"

#include <ostream>

#include "vfpass/base/text.hpp"
#include "vfpass/report/result_report.hpp"

namespace vfpass::commands {

void printError(std::ostream& err, const Error& error) {
  // Messages contain names from XML, sysfs and libvirt.
  err << "vfpass: " << printableLines(error.what()) << '\n';
  if (!error.remedy().empty()) {
    err << "        " << printableLines(error.remedy()) << '\n';
  }
}

EndedRun runAndRecord(Session& session, const Runner& runner) {
  try {
    return {runner(session), std::nullopt};
  } catch (const Error& error) {
    session.progress().clear();
    session.endPager();
    const bool printed = session.operations().failed(error);
    if (!printed) {
      printError(session.err(), error);
    }
    if (session.options().json && !session.outputBegun()) {
      report::writeError(session.out(), error);
    }
    return {error.code(), error};
  } catch (const std::exception& error) {
    session.operations().end({events::Result::failed, error.what()});
    throw;
  }
}

}  // namespace vfpass::commands
