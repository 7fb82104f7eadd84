#include "launcher/core/error_file.h"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

namespace ddp::launcher {

std::string error_file_message(std::string_view text) {
  boost::json::parse_options options;
  options.allow_invalid_utf8 = true;
  boost::system::error_code error;
  const boost::json::value file = boost::json::parse(text, error, {}, options);
  if (error || !file.is_object()) {
    return {};
  }
  const boost::json::value* message = file.as_object().if_contains("message");
  if (message != nullptr && message->is_object()) {
    message = message->as_object().if_contains("message");
  }
  if (message == nullptr || !message->is_string()) {
    return {};
  }
  return std::string(message->as_string());
}

}  // namespace ddp::launcher
