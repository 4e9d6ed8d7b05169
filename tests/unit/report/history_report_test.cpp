#include "vfpass/report/command_reports.hpp"

#include <sstream>

#include "golden.hpp"

namespace vfpass::report {
namespace {

using events::PastOperation;

PastOperation attachOf(const std::string& vm) {
  PastOperation past;
  past.time += std::chrono::seconds(1767323045);
  past.messageId = "1a1e18434ef5407e82a8aca528a2b8c8";
  past.operation = "attach";
  past.result = "done";
  past.vm = vm;
  past.vmUuid = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
  past.message = "attached 1 device to domain train0";
  past.user = "alice";
  past.userId = 1000;
  past.pfs = {parsePciAddress("0000:3b:00.0").value()};
  past.vfs = {parsePciAddress("0000:3b:00.2").value()};
  return past;
}

PastOperation gcByTimer() {
  PastOperation past;
  past.time += std::chrono::seconds(1767409445);
  past.messageId = "22ac344a4a3c4182b6f3bf195fea95af";
  past.operation = "gc";
  past.result = "refused";
  past.message = "VF in use:\nby \x1b[31mqemu";
  past.remedy = "stop it";
  past.unit = "vfpass-gc.service";
  return past;
}

std::string writtenHistory(const std::vector<PastOperation>& operations, const Style& style) {
  std::ostringstream out;
  writeHistory(out, operations, style);
  return out.str();
}

TEST(HistoryReport, ListsOperations) {
  PastOperation boot = gcByTimer();
  boot.operation = "release";
  boot.result = "done";
  boot.unit = "";
  expectGolden("history.txt", writtenHistory({attachOf("train0"), gcByTimer(), boot}, {}));
}

TEST(HistoryReport, JsonMatchesItsSchema) {
  const std::string text = writtenHistory({attachOf("a\n\xff"), gcByTimer()}, {.json = true});
  expectValid("history", text);
  expectGolden("history.json", text);
}

TEST(HistoryReport, WithoutOperationsSaysSo) {
  EXPECT_EQ(writtenHistory({}, {}), "no operations\n");
  expectValid("history", writtenHistory({}, {.json = true}));
}

}  // namespace
}  // namespace vfpass::report
