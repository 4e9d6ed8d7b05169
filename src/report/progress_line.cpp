#include "vfpass/report/progress_line.hpp"

#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ostream>
#include <system_error>

#include "text_values.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::report {
namespace {

constexpr const char* eraseLine = "\r\x1b[K";

}  // namespace

ProgressLine::ProgressLine(std::ostream& out, bool enabled, std::size_t columns,
                           std::function<Clock::time_point()> now)
    : out_(out), enabled_(enabled), columns_(columns), now_(std::move(now)) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::show(const std::string& what) {
  if (!enabled_) {
    return;
  }
  const std::lock_guard lock(mutex_);
  if (what_.empty()) {
    begin_ = now_();
  }
  what_ = printable(what);
  draw();
}

void ProgressLine::tick() {
  const std::lock_guard lock(mutex_);
  if (enabled_ && !what_.empty() && (!visible_ || now_() - drawn_ >= std::chrono::seconds(1))) {
    draw();
  }
}

void ProgressLine::refresh() {
  const std::lock_guard lock(mutex_);
  const auto isDue = [this](Clock::time_point since) {
    return now_() - since >= std::chrono::milliseconds(990);  // wake-ups are not exact
  };
  if (visible_) {
    if (isDue(drawn_)) {
      draw();
    }
  } else if (!awaited_.empty() && isDue(waitBegin_)) {
    what_ = awaited_;
    begin_ = waitBegin_;
    draw();
  }
}

void ProgressLine::clear() {
  const std::lock_guard lock(mutex_);
  erase();
}

void ProgressLine::end() {
  const std::lock_guard lock(mutex_);
  erase();
  what_.clear();
}

void ProgressLine::beginWait(const std::string& what) {
  if (enabled_) {
    const std::lock_guard lock(mutex_);
    awaited_ = printable(what);
    waitBegin_ = now_();
  }
}

void ProgressLine::endWait() {
  const std::lock_guard lock(mutex_);
  if (!awaited_.empty() && what_ == awaited_) {
    erase();
    what_.clear();
  }
  awaited_.clear();
}

void ProgressLine::erase() {
  if (visible_) {
    out_ << eraseLine << std::flush;
    visible_ = false;
  }
}

void ProgressLine::draw() {
  drawn_ = now_();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(drawn_ - begin_).count();
  // A line that wraps could not be replaced. printable() leaves UTF-8, so bytes are an upper bound.
  // The last column stays free; a terminal without room for the time shows the text alone.
  std::string time = ", " + std::to_string(seconds) + " s";
  const std::size_t width = columns_ > 0 ? columns_ - 1 : 0;
  if (time.size() >= width) {
    time.clear();
  }
  const std::size_t room = width - time.size();
  std::string text = what_.substr(0, room);
  while (!text.empty() && text.size() < what_.size() && isContinuation(what_[text.size()])) {
    text.pop_back();  // only whole characters
  }
  out_ << eraseLine << text << time << std::flush;
  visible_ = true;
}

ProgressTicker::ProgressTicker(ProgressLine& line, std::chrono::milliseconds interval) {
  if (!line.isEnabled()) {
    return;
  }
  // Signals are for the thread that waits: one that this thread took would interrupt nothing.
  sigset_t all{};
  sigset_t before{};
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this, &line, interval] { run(line, interval); });
  } catch (const std::system_error&) {  // no memory for it: the line then counts no seconds
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ProgressTicker::~ProgressTicker() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_one();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void ProgressTicker::run(ProgressLine& line, std::chrono::milliseconds interval) {
  std::unique_lock lock(mutex_);
  while (!end_.wait_for(lock, interval, [this] { return ended_; })) {
    line.refresh();
  }
}

ProgressWait::ProgressWait(ProgressLine& line, const std::string& what)
    : line_(line), ticker_(line) {
  line.beginWait(what);
}

ProgressWait::~ProgressWait() { line_.endWait(); }

std::size_t terminalColumns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace vfpass::report
