#include "launcher/io/worker_output.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <utility>

namespace ddp::launcher {
namespace {

// All that a pipe holds, so what is read ends where a worker's write ended, if those are no larger
// than a page; lines of several workers then stay whole.
constexpr std::size_t kPiece = 64 * 1024;

// Of a dead worker: more than any pipe holds, so the rest is of somebody who goes on writing.
constexpr int kMostPieces = 32;

constexpr int kTurn = 64;  // streams that are read before others get their turn

struct Ends {
  UniqueFd ours;
  UniqueFd workers;
};

std::optional<Ends> open_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);  // our end only
  return Ends{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

int descriptor_of(Sink sink) {
  return sink == Sink::out ? STDOUT_FILENO : STDERR_FILENO;
}

void copy_window_size(int from, int to) {
  winsize size{};
  if (::ioctl(from, TIOCGWINSZ, &size) == 0) ::ioctl(to, TIOCSWINSZ, &size);
}

// Raw, so that bytes pass as they are: the user's own terminal does with them what it is set to do.
std::optional<Ends> open_terminal(int sink) {
  constexpr int kFlags = O_RDWR | O_NOCTTY | O_CLOEXEC;
  Ends ends;
  ends.ours.reset(::posix_openpt(kFlags | O_NONBLOCK));
  int locked = 0;
  if (!ends.ours.valid() || ::ioctl(ends.ours.get(), TIOCSPTLCK, &locked) != 0) return std::nullopt;
  ends.workers.reset(::ioctl(ends.ours.get(), TIOCGPTPEER, kFlags));
  termios settings{};
  if (!ends.workers.valid() || ::tcgetattr(ends.workers.get(), &settings) != 0) return std::nullopt;
  ::cfmakeraw(&settings);
  if (::tcsetattr(ends.workers.get(), TCSANOW, &settings) != 0) return std::nullopt;
  copy_window_size(sink, ends.ours.get());
  return ends;
}

}  // namespace

WorkerOutput::WorkerOutput(boost::asio::io_context& context, Console& console,
                           const StreamPlan& plan, std::size_t workers)
    : context_(context),
      console_(console),
      plan_(plan),
      tails_(workers),
      buffer_(std::make_unique_for_overwrite<char[]>(kPiece)),
      hearing_limit_(context) {
  check_limit(workers);
  if (plan_.err != StreamRoute::inherited) err_ = open_channel(Sink::err, workers);
  if (plan_.out != StreamRoute::inherited && !plan_.joined) out_ = open_channel(Sink::out, workers);
}

WorkerOutput::~WorkerOutput() {
  if (out_) console_.when_room(Sink::out, nullptr);
  if (err_) console_.when_room(Sink::err, nullptr);
}

void WorkerOutput::check_limit(std::size_t workers) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
      limit.rlim_cur < descriptors_for(plan_, static_cast<std::int32_t>(workers))) {
    fall_back(StreamRoute::pipe, EMFILE);
  }
}

std::unique_ptr<WorkerOutput::Channel> WorkerOutput::open_channel(Sink sink, std::size_t workers) {
  UniqueFd ready(::epoll_create1(EPOLL_CLOEXEC));
  if (!ready.valid()) {
    fall_back(StreamRoute::pipe, errno);
    return nullptr;
  }
  auto channel = std::make_unique<Channel>(
      Channel{sink, boost::asio::posix::stream_descriptor(context_, ready.release()),
              std::vector<Stream>(workers)});
  wait(*channel);
  return channel;
}

// Those that have been started already keep what they have.
void WorkerOutput::fall_back(StreamRoute missing, int error) {
  const bool terminal = missing == StreamRoute::terminal;
  plan_ = terminal ? without_terminals(plan_) : StreamPlan{};
  trouble_ = (terminal ? "no pseudo terminal is to be had: " : "no pipes are to be had: ") +
             std::generic_category().message(error);
  if (error == EMFILE) trouble_ += " (raise the limit: ulimit -n)";
}

StandardStreams WorkerOutput::open(std::size_t worker) {
  workers_ends_.clear();
  StandardStreams streams;
  if (plan_.err != StreamRoute::inherited) streams.err = open_stream(*err_, plan_.err, worker);
  if (plan_.joined) {
    streams.out = streams.err;
  } else if (plan_.out != StreamRoute::inherited) {
    streams.out = open_stream(*out_, plan_.out, worker);
  }
  streams.terminal = (streams.err >= 0 && plan_.err == StreamRoute::terminal) ||
                     (streams.out >= 0 && plan_.out == StreamRoute::terminal);
  return streams;
}

int WorkerOutput::open_stream(Channel& channel, StreamRoute route, std::size_t worker) {
  std::optional<Ends> ends =
      route == StreamRoute::pipe ? open_pipe() : open_terminal(descriptor_of(channel.sink));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = worker;
  if (!ends ||
      ::epoll_ctl(channel.ready.native_handle(), EPOLL_CTL_ADD, ends->ours.get(), &event) != 0) {
    fall_back(route, errno);
    return -1;
  }
  Stream& stream = channel.streams[worker];
  stream.fd = std::move(ends->ours);
  stream.route = route;
  workers_ends_.push_back(std::move(ends->workers));
  return workers_ends_.back().get();
}

void WorkerOutput::started() {
  workers_ends_.clear();
}

void WorkerOutput::wait(Channel& channel) {
  if (!console_.has_room(channel.sink)) {
    console_.when_room(channel.sink, [this, &channel] { wait(channel); });
    return;
  }
  channel.ready.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                           [this, &channel](const boost::system::error_code& error) {
                             if (!error) on_ready(channel);
                           });
}

void WorkerOutput::on_ready(Channel& channel) {
  std::array<epoll_event, kTurn> events;
  const int count = ::epoll_wait(channel.ready.native_handle(), events.data(), kTurn, 0);
  for (int i = 0; i < count && console_.has_room(channel.sink); ++i) {
    const auto worker = static_cast<std::size_t>(events[static_cast<std::size_t>(i)].data.u64);
    Stream& stream = channel.streams[worker];
    if (!stream.fd.valid() || read(channel, worker) != Got::end) continue;
    if (stream.alive && stream.route == StreamRoute::terminal) {
      // Nobody holds it open, but it is still the worker's: closed, it would hang up on him.
      ::epoll_ctl(channel.ready.native_handle(), EPOLL_CTL_DEL, stream.fd.get(), nullptr);
    } else {
      stream.fd.reset();
    }
  }
  wait(channel);
  if (heard_out_ && !somebody_holds_streams_of_dead()) stop_hearing();
}

WorkerOutput::Got WorkerOutput::read(Channel& channel, std::size_t worker) {
  const Stream& stream = channel.streams[worker];
  std::size_t size = 0;
  Got got = Got::nothing;
  while (size < kPiece) {
    const ssize_t more = ::read(stream.fd.get(), buffer_.get() + size, kPiece - size);
    if (more < 0 && errno == EINTR) continue;
    // A terminal at which nobody is left says EIO.
    if (more == 0 || (more < 0 && errno != EAGAIN)) got = Got::end;
    if (more <= 0) break;
    size += static_cast<std::size_t>(more);
    // A terminal gives a page at a time, wherever that ends.
    if (stream.route == StreamRoute::pipe) break;
  }
  if (size == 0) return got;
  heard_something_ = true;
  const std::string_view bytes(buffer_.get(), size);
  if (channel.sink == Sink::err) tails_[worker].add(bytes);
  console_.output(channel.sink, bytes);
  return Got::bytes;
}

// Past the sink's room: what the dead have written can't be held back.
void WorkerOutput::read_rest(Channel& channel, std::size_t worker) {
  Stream& stream = channel.streams[worker];
  stream.alive = false;
  if (!stream.fd.valid()) return;
  Got got = Got::bytes;
  for (int pieces = 0; got == Got::bytes && pieces < kMostPieces; ++pieces) {
    got = read(channel, worker);
  }
  if (got == Got::end) stream.fd.reset();
}

void WorkerOutput::ended(std::size_t worker) {
  if (out_) read_rest(*out_, worker);
  if (err_) read_rest(*err_, worker);
}

bool WorkerOutput::somebody_holds_streams_of_dead() const {
  const auto is_held = [](const Stream& stream) { return !stream.alive && stream.fd.valid(); };
  const auto any_is_held = [&](const std::unique_ptr<Channel>& channel) {
    return channel && std::any_of(channel->streams.begin(), channel->streams.end(), is_held);
  };
  return any_is_held(out_) || any_is_held(err_);
}

void WorkerOutput::hear_out(const Patience& patience, std::function<bool()> somebody_runs,
                            std::function<void()> done) {
  if (!somebody_holds_streams_of_dead()) return done();
  heard_out_ = std::move(done);
  somebody_runs_ = std::move(somebody_runs);
  patience_ = patience;
  hearing_ends_ = std::chrono::steady_clock::now() + patience.limit;
  wait_for_silence();
}

void WorkerOutput::wait_for_silence() {
  heard_something_ = false;
  hearing_limit_.expires_after(patience_.silence);
  hearing_limit_.async_wait([this](const boost::system::error_code& error) {
    if (error || !heard_out_) return;
    const bool goes_on = heard_something_ || somebody_runs_();
    if (goes_on && std::chrono::steady_clock::now() < hearing_ends_) {
      wait_for_silence();
    } else {
      stop_hearing();
    }
  });
}

void WorkerOutput::stop_hearing() {
  hearing_limit_.cancel();
  if (const auto done = std::exchange(heard_out_, nullptr)) done();
}

void WorkerOutput::pass_on_window_size() {
  for (const Channel* const channel : {out_.get(), err_.get()}) {
    if (channel == nullptr) continue;
    for (const Stream& stream : channel->streams) {
      if (stream.fd.valid() && stream.route == StreamRoute::terminal) {
        copy_window_size(descriptor_of(channel->sink), stream.fd.get());
      }
    }
  }
}

void WorkerOutput::finish() {
  for (Channel* const channel : {out_.get(), err_.get()}) {
    if (channel == nullptr) continue;
    for (std::size_t worker = 0; worker < channel->streams.size(); ++worker) {
      read_rest(*channel, worker);
      channel->streams[worker].fd.reset();
    }
  }
}

}  // namespace ddp::launcher
