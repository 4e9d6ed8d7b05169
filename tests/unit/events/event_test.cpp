#include "vfpass/events/journal_event.hpp"

#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace vfpass::events {
namespace {

using testing::HasSubstr;

std::string textOf(const std::string& file) {
  std::ifstream stream(VFPASS_SOURCE_DIR "/" + file);
  EXPECT_TRUE(stream) << file;
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

TEST(Events, HaveUniqueMessageIds) {
  std::set<std::string_view> ids;
  for (const Event& event : allEvents()) {
    EXPECT_TRUE(ids.insert(event.messageId).second) << event.messageId;
    EXPECT_EQ(event.messageId.size(), 32U);
    EXPECT_EQ(event.messageId.find_first_not_of("0123456789abcdef"), std::string_view::npos);
  }
}

TEST(Events, AreFoundByOperationAndResult) {
  for (const Event& event : allEvents()) {
    EXPECT_EQ(findEvent(event.operation, event.result), &event);
  }
  EXPECT_EQ(findEvent(Operation::recover, Result::unverified), nullptr);
}

TEST(Events, RefusedOperationIsTheEventOfAFailedOne) {
  EXPECT_EQ(findEvent(Operation::attach, Result::refused),
            findEvent(Operation::attach, Result::failed));
}

TEST(Events, AreDocumentedAndInTheMessageCatalog) {
  const std::string documentation = textOf("docs/logging.md");
  const std::string catalog = textOf("packaging/vfpass.catalog");
  for (const Event& event : allEvents()) {
    const std::string id(event.messageId);
    EXPECT_THAT(documentation, HasSubstr("| `" + std::string(toString(event.operation)) + "` | `" +
                                         std::string(toString(event.result)) + "` | `" + id + "`"));
    EXPECT_THAT(catalog, HasSubstr("-- " + id + "\n"));
  }
}

}  // namespace
}  // namespace vfpass::events
