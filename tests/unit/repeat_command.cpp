// Linked into every unit test program: a failing test prints the command that runs it again.
#include <gtest/gtest.h>

#include <climits>
#include <cstdio>

#include "vfpass/base/text.hpp"

namespace {

class RepeatCommand : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& info) override {
    if (info.result()->Failed()) {
      const std::string filter = std::string(info.test_suite_name()) + '.' + info.name();
      std::printf("repeat: %s --gtest_filter=%s\n",
                  vfpass::shellArgument(testing::internal::GetArgvs().front()).c_str(),
                  vfpass::shellArgument(filter).c_str());
    }
  }
};

// gtest_main parses the arguments after static initialisation, so the listener is there for the
// first test. GoogleTest owns it.
const bool listens = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new RepeatCommand);
  return true;
}();

}  // namespace
