#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "vfpass/doctor/doctor.hpp"

namespace vfpass::doctor {
namespace {

constexpr const char* today = "2027-01-31";

Diagnosis diagnosis(const std::string& check, const std::string& subject, Outcome outcome) {
  return {{check, subject, outcome, "", "", ""}, ""};
}

// The acceptance of one finding of `acs` about "a".
Diagnosis accept(const std::vector<AcceptedFinding>& accepted, Outcome outcome = Outcome::failed) {
  std::vector<Diagnosis> found{diagnosis("acs", "a", outcome)};
  acceptFindings(accepted, today, found);
  return found[0];
}

TEST(AcceptFindings, AcceptsByNameUntilTheDayHasPassed) {
  EXPECT_TRUE(isFailure(accept({})));
  EXPECT_TRUE(isFailure(accept({{"ats", "", "r", today}})));
  const Diagnosis lastDay = accept({{"acs", "", "r", today}});
  EXPECT_FALSE(isFailure(lastDay));
  EXPECT_EQ(describeAcceptance(lastDay), "accepted until 2027-01-31: r");
  const Diagnosis expired = accept({{"acs", "", "r", "2027-01-30"}});
  EXPECT_TRUE(isFailure(expired));
  EXPECT_FALSE(isAccepted(expired));
  EXPECT_EQ(describeAcceptance(expired), "the acceptance ended on 2027-01-30: r");
}

TEST(AcceptFindings, SubjectSelectsOneFinding) {
  EXPECT_FALSE(isFailure(accept({{"acs", "a", "r", today}})));
  EXPECT_TRUE(isFailure(accept({{"acs", "b", "r", today}})));
  EXPECT_EQ(accept({{"acs", "a", "short", "2027-01-01"}, {"acs", "", "long", "2028-01-01"}})
                .acceptance->reason,
            "long");
}

TEST(AcceptFindings, AcceptsFailuresAndWarningsOnly) {
  EXPECT_TRUE(isAccepted(accept({{"acs", "", "r", today}}, Outcome::warning)));
  for (const Outcome outcome : {Outcome::passed, Outcome::notObservable, Outcome::waived}) {
    EXPECT_FALSE(accept({{"acs", "", "r", today}}, outcome).acceptance);
  }
}

TEST(CheckNames, AreThoseThatHostFileCanAccept) {
  std::ifstream file(std::string(VFPASS_SOURCE_DIR) + "/docs/schema/host.schema.json");
  const auto schema = nlohmann::json::parse(file);
  const auto known = schema["/definitions/accepted/properties/check/enum"_json_pointer]
                         .get<std::set<std::string>>();
  const auto names = checkNames();
  EXPECT_EQ(known, (std::set<std::string>{names.begin(), names.end()}));
}

}  // namespace
}  // namespace vfpass::doctor
