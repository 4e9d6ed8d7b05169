#include "saved_plan.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fake/temporary_folder.hpp"
#include "vfpass/error.hpp"

namespace vfpass::commands {
namespace {

const PciAddress pf{0, 0x3b, 0, 0};

Plan samplePlan() {
  Plan plan;
  plan.domainName = "train0";
  plan.steps = {{CreateVfs{pf, 8, false}, {}, "the PF has no VFs", false},
                {BindDriver{pf, "vfio-pci", "vfio-pci"}, {}, "", false}};
  return plan;
}

SavedPlan sample() { return planToSave("attach", samplePlan(), {true, false}, "<domain/>"); }

class SavedPlanTest : public testing::Test {
 protected:
  [[nodiscard]] SavedPlan readBack(const SavedPlan& plan) const {
    writeSavedPlan(file(), plan);
    return readSavedPlan(file(), plan.command).value();
  }

  // The message of the refusal, and its exit code.
  [[nodiscard]] std::string refusal(const SavedPlan& saved, const SavedPlan& now) const {
    try {
      requireSame(saved, now, file());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::refused);
      return error.what();
    }
    return {};
  }

  [[nodiscard]] std::filesystem::path file() const { return folder_.path() / "plan.json"; }

 private:
  fake::TemporaryFolder folder_;
};

TEST_F(SavedPlanTest, IsTheSameWhenReadBack) {
  EXPECT_EQ(readBack(sample()), sample());
  EXPECT_EQ(refusal(readBack(sample()), sample()), "");
}

TEST_F(SavedPlanTest, RefusesAnAdditionalStep) {
  Plan more = samplePlan();
  more.steps.push_back({ResetFunction{pf}, {}, "", false});
  EXPECT_NE(refusal(sample(), planToSave("attach", more, {true, false}, "<domain/>"))
                .find("it would now also reset 0000:3b:00.0"),
            std::string::npos);
}

TEST_F(SavedPlanTest, RefusesAMissingStep) {
  Plan fewer = samplePlan();
  fewer.steps.pop_back();
  EXPECT_NE(refusal(sample(), planToSave("attach", fewer, {true, false}, "<domain/>"))
                .find("it would no longer bind 0000:3b:00.0 to vfio-pci"),
            std::string::npos);
}

TEST_F(SavedPlanTest, RefusesAStepWithAnotherValueAndTheSameText) {
  Plan other = samplePlan();
  std::get<CreateVfs>(other.steps[0].action).autoprobe = true;
  EXPECT_NE(refusal(sample(), planToSave("attach", other, {true, false}, "<domain/>"))
                .find("with other details"),
            std::string::npos);
}

TEST_F(SavedPlanTest, RefusesAnotherDomainXml) {
  EXPECT_NE(refusal(sample(), planToSave("attach", samplePlan(), {true, false}, "<domain />"))
                .find("the domain's XML is another one"),
            std::string::npos);
}

TEST_F(SavedPlanTest, RefusesAnotherScopeAndAnotherDomain) {
  EXPECT_NE(refusal(sample(), planToSave("attach", samplePlan(), {true, true}, "<domain/>"))
                .find("another configuration"),
            std::string::npos);
  SavedPlan other = sample();
  other.domain = "00000000-0000-0000-0000-000000000001";
  EXPECT_NE(refusal(other, sample()).find("another domain"), std::string::npos);
}

TEST_F(SavedPlanTest, IsForOneCommand) {
  writeSavedPlan(file(), sample());
  EXPECT_THROW(readSavedPlan(file(), "detach"), Error);
}

TEST_F(SavedPlanTest, OtherFilesAreBadInput) {
  for (const std::string text :
       {"", "{", "[]", "{\"schema_version\": 2}", "{\"schema_version\": 1}",
        "{\"schema_version\": 1, \"command\": 7}"}) {
    std::ofstream(file(), std::ios::trunc) << text;
    try {
      readSavedPlan(file(), "attach");
      ADD_FAILURE() << "accepted " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::badInput) << text;
    }
  }
}

TEST_F(SavedPlanTest, RefusesPlanOfAnotherVersion) {
  writeSavedPlan(file(), sample());
  auto document = nlohmann::json::parse(std::ifstream(file()));
  document["schema_version"] = document["schema_version"].get<int>() + 1;
  std::ofstream(file(), std::ios::trunc) << document;
  try {
    readSavedPlan(file(), "attach");
    ADD_FAILURE() << "accepted " << document;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("of another version"), std::string::npos);
  }
}

// It stops reading at the limit, and does not leave that to the parser.
TEST_F(SavedPlanTest, RefusesToReadFileThatIsTooLong) {
  writeSavedPlan(file(), sample());
  std::filesystem::resize_file(file(), (std::uintmax_t{16} << 20U) + 1);
  try {
    readSavedPlan(file(), "attach");
    ADD_FAILURE() << "read more than 16 MiB";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cannot read the saved plan"), std::string::npos)
        << error.what();
  }
}

TEST_F(SavedPlanTest, PartsOfHostApplyAreToldApart) {
  SavedPlan one{"host apply", "", "", "", {}};
  SavedPlan two = one;
  addSteps(one, "0000:3b:00.0", samplePlan().steps);
  addSteps(two, "0000:3b:00.1", samplePlan().steps);
  EXPECT_NE(one, two);
  EXPECT_EQ(readBack(one), one);
}

}  // namespace
}  // namespace vfpass::commands
