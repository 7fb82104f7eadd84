#include "launcher/core/error_file.h"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <charconv>

namespace ddp::launcher {
namespace {

namespace json = boost::json;

// Seconds since 1970, as a number or as text; anything outside of some centuries is no time.
std::optional<std::chrono::microseconds> time_of(const json::value& value) {
  constexpr double kLatest = 1e10;
  double seconds = 0;
  if (value.is_string()) {
    const json::string& text = value.get_string();
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, seconds);
    if (error != std::errc() || end != last) return std::nullopt;
  } else if (value.is_number()) {
    seconds = value.to_number<double>();
  }
  if (!(seconds > 0 && seconds < kLatest)) return std::nullopt;
  return std::chrono::microseconds(static_cast<std::int64_t>(seconds * 1e6));
}

const json::value* member(const json::value& object, std::string_view name) {
  return object.is_object() ? object.get_object().if_contains(name) : nullptr;
}

}  // namespace

ErrorFile parse_error_file(std::string_view text) {
  json::parse_options options;
  options.allow_invalid_utf8 = true;
  boost::system::error_code error;
  const json::value file = json::parse(text, error, {}, options);
  if (error) return {};
  ErrorFile found;
  const json::value* message = member(file, "message");
  const json::value* time = member(file, "timestamp");
  if (message != nullptr && message->is_object()) {
    const json::value* more = member(*message, "extraInfo");
    time = more == nullptr ? nullptr : member(*more, "timestamp");
    message = member(*message, "message");
  }
  if (message != nullptr && message->is_string()) found.message = message->get_string();
  if (time != nullptr) found.failed_at = time_of(*time);
  return found;
}

}  // namespace ddp::launcher
