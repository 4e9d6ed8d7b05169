#include "schedule/schedule.hpp"

#include <sstream>
#include <stdexcept>

#include "vfpass/base/text.hpp"

namespace vfpass::crash {
namespace {

constexpr std::string_view turns = ">!elPd";

Actor parseActor(const std::string& text) {
  Actor actor;
  std::istringstream actions(text);
  for (std::string action; std::getline(actions, action, ',');) {
    std::istringstream words(action);
    Action parsed;
    if (words >> parsed.verb) {  // shrink() leaves actors without actions
      words >> parsed.vm;
      actor.push_back(parsed);
    }
  }
  return actor;
}

Deviation parseDeviation(const std::string& word) {
  const auto at = word.find_first_of(turns);
  if (at == std::string::npos) {
    throw std::invalid_argument("not a deviation: " + word);
  }
  return {std::stol(word.substr(0, at)), static_cast<Turn>(word[at]),
          std::stoul("0" + word.substr(at + 1))};
}

}  // namespace

std::string toText(const Action& action) {
  return action.verb + (action.vm.empty() ? "" : " " + action.vm);
}

std::string toText(const Schedule& schedule) {
  std::string text = schedule.host + ' ' + std::to_string(schedule.tick);
  for (const auto& actor : schedule.actors) {
    std::vector<std::string> actions;
    for (const auto& action : actor) {
      actions.push_back(toText(action));
    }
    text += " / " + join(actions, ", ");
  }
  text += " @";
  for (const auto& each : schedule.deviations) {
    text +=
        ' ' + std::to_string(each.step) + static_cast<char>(each.turn) + std::to_string(each.actor);
  }
  return text;
}

Schedule parseSchedule(const std::string& text) {
  Schedule schedule;
  const auto at = text.find('@');
  std::istringstream parts(text.substr(0, at));
  std::string part;
  std::getline(parts, part, '/');
  std::istringstream(part) >> schedule.host >> schedule.tick;
  while (std::getline(parts, part, '/')) {
    schedule.actors.push_back(parseActor(part));
  }
  std::istringstream words(at == std::string::npos ? "" : text.substr(at + 1));
  for (std::string word; words >> word;) {
    schedule.deviations.push_back(parseDeviation(word));
  }
  return schedule;
}

}  // namespace vfpass::crash
