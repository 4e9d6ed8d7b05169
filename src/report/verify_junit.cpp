#include <algorithm>
#include <ostream>

#include "vfpass/report/verify_report.hpp"
#include "xml_text.hpp"

namespace vfpass::report {
namespace {

void appendProblem(pugi::xml_node testCase, const char* kind, const std::string& message,
                   const std::string& remedy) {
  auto problem = testCase.append_child(kind);
  appendAttribute(problem, "message", message);
  setText(problem, remedy);
}

void appendOutcome(pugi::xml_node testCase, const Finding& finding) {
  const std::string message = "expected " + finding.expected + ", found " + finding.seen;
  switch (finding.outcome) {
    case Outcome::passed:
      break;
    case Outcome::failed:
      appendProblem(testCase, "failure", message, finding.remedy);
      break;
    case Outcome::notObservable:
      appendProblem(testCase, "error", message, finding.remedy);
      break;
    case Outcome::waived:
      appendAttribute(testCase.append_child("skipped"), "message", finding.seen);
      break;
    case Outcome::warning:
      setText(testCase.append_child("system-out"), "warning: " + message + "; " + finding.remedy);
      break;
  }
}

void appendCase(pugi::xml_node suite, const Finding& finding) {
  auto testCase = suite.append_child("testcase");
  appendAttribute(testCase, "classname", "vfpass.verify");
  appendAttribute(testCase, "name",
                  finding.subject.empty() ? finding.key : finding.subject + "." + finding.key);
  appendOutcome(testCase, finding);
}

void appendCount(pugi::xml_node suite, const char* name, const VerifyReport& report,
                 Outcome outcome) {
  const auto count = std::ranges::count(report.findings, outcome, &Finding::outcome);
  appendAttribute(suite, name, std::to_string(count));
}

}  // namespace

void writeVerifyJunit(std::ostream& out, const VerifyReport& report) {
  pugi::xml_document document;
  auto declaration = document.append_child(pugi::node_declaration);
  appendAttribute(declaration, "version", "1.0");
  appendAttribute(declaration, "encoding", "UTF-8");
  auto suite = document.append_child("testsuite");
  appendAttribute(suite, "name", "vfpass verify " + report.domainName);
  appendAttribute(suite, "timestamp", report.time);
  appendAttribute(suite, "tests", std::to_string(report.findings.size()));
  appendCount(suite, "failures", report, Outcome::failed);
  appendCount(suite, "errors", report, Outcome::notObservable);
  appendCount(suite, "skipped", report, Outcome::waived);
  for (const auto& each : report.findings) {
    appendCase(suite, each);
  }
  document.save(out, "  ");
}

}  // namespace vfpass::report
