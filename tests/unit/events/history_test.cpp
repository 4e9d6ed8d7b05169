#include "vfpass/events/history.hpp"

#include "vfpass/events/journal_event.hpp"

namespace vfpass::events {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// The matches of one alternative: those between two "+".
std::vector<std::vector<std::string>> matchesOf(const std::vector<std::string>& command) {
  std::vector<std::vector<std::string>> alternatives(1);
  for (const auto& word : command) {
    if (word == "+") {
      alternatives.emplace_back();
    } else if (!word.starts_with("-") && !word.starts_with("/")) {
      alternatives.back().push_back(word);
    }
  }
  return alternatives;
}

HistoryQuery queryFor(const std::string& vm) {
  HistoryQuery query;
  query.vm = vm;
  return query;
}

TEST(HistoryQuery, AlwaysAsksForEntriesOfRoot) {
  for (const std::string vm : {"", "train0", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}) {
    for (const auto& matches : matchesOf(journalctlCommand(queryFor(vm)))) {
      EXPECT_EQ(matches.front(), "_UID=0");
      EXPECT_EQ(matches.size(), 1 + allEvents().size() + (vm.empty() ? 0 : 1));
    }
  }
}

TEST(HistoryQuery, MatchesNameOrUuid) {
  const auto matches = matchesOf(journalctlCommand(queryFor("Train0")));
  ASSERT_EQ(matches.size(), 2U);
  EXPECT_EQ(matches[0].back(), "VFPASS_VM=Train0");
  EXPECT_EQ(matches[1].back(), "VFPASS_VM_UUID=train0");
}

TEST(HistoryQuery, ValuesAreNoOptions) {
  const auto command = journalctlCommand({.vm = "--rotate", .since = "-1h", .directory = "/--x"});
  EXPECT_THAT(command, Contains("VFPASS_VM=--rotate"));
  EXPECT_THAT(command, Contains("--since=-1h"));
  EXPECT_THAT(command, Contains("--directory=/--x"));
  EXPECT_THAT(command, Not(Contains("--rotate")));
}

TEST(History, ReadsTheFieldsOfAnEntry) {
  const auto history = readHistory(
      R"({"__CURSOR":"s=1","__REALTIME_TIMESTAMP":"1795470510336758","MESSAGE":"attached",)"
      R"("MESSAGE_ID":"1a1e18434ef5407e82a8aca528a2b8c8","VFPASS_OPERATION":"attach",)"
      R"("VFPASS_RESULT":"done","VFPASS_VM":"train0","VFPASS_PF":"0000:3b:00.0",)"
      R"("VFPASS_VF":["0000:3b:00.2","0000:3b:00.3"],"VFPASS_USER":"alice",)"
      R"("VFPASS_USER_ID":"1000","_SYSTEMD_UNIT":"session-3.scope"})"
      "\n");
  ASSERT_EQ(history.operations.size(), 1U);
  const PastOperation& past = history.operations.front();
  EXPECT_EQ(past.time.time_since_epoch().count(), 1795470510336758);
  EXPECT_EQ(past.operation, "attach");
  EXPECT_EQ(past.vm, "train0");
  EXPECT_EQ(past.userId, 1000U);
  EXPECT_EQ(past.unit, "") << "a login session is no service";
  EXPECT_THAT(past.pfs, ElementsAre(parsePciAddress("0000:3b:00.0").value()));
  EXPECT_EQ(past.vfs.size(), 2U);
  EXPECT_THAT(history.remarks, IsEmpty());
}

TEST(History, ReadsBytesThatAreNoText) {
  const auto history = readHistory(R"({"VFPASS_VM":[97,10,255],"MESSAGE":null,"VFPASS_PF":"x"})");
  ASSERT_EQ(history.operations.size(), 1U);
  EXPECT_EQ(history.operations.front().vm, "a\n\xff");
  EXPECT_EQ(history.operations.front().message, "");
  EXPECT_THAT(history.operations.front().pfs, IsEmpty());
}

TEST(History, KeepsWhatIsNoEntryAsARemark) {
  const auto history = readHistory("Hint: x\n{]\n-- No entries --\n");
  EXPECT_THAT(history.operations, IsEmpty());
  EXPECT_THAT(history.remarks, ElementsAre("Hint: x", StartsWith("ignored an entry: ")));
}

}  // namespace
}  // namespace vfpass::events
