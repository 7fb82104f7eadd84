#include "rendezvous/core/message_json.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/system/error_code.hpp>
#include <utility>

#include "rendezvous/core/message_json_fields.h"

namespace ddp::rendezvous {
namespace {

namespace json = boost::json;
using message_json::as_text;
using message_json::ObjectReader;
using message_json::write;

// ---- to JSON ---------------------------------------------------------------------------------

struct ToJson {
  std::string_view type;
  json::object body;

  void operator()(const Hello& hello) {
    type = "hello";
    body = {{"min_version", hello.min_version},
            {"max_version", hello.max_version},
            {"job", as_text(hello.job)},
            {"node", write(hello.node)},
            {"nonce", as_text(hello.nonce)}};
  }
  void operator()(const Welcome& welcome) {
    type = "welcome";
    body = {{"version", welcome.version},
            {"embedded", welcome.embedded},
            {"heartbeat_ms", write(welcome.heartbeat)},
            {"timeout_ms", write(welcome.timeout)}};
  }
  void operator()(const StatusMessage& message) {
    type = "status";
    body = {{"sequence", message.sequence}, {"status", write(message.status)}};
  }
  void operator()(const OrderMessage& message) {
    type = "order";
    body = {{"sequence", message.sequence}, {"order", write(message.order)}};
  }
  void operator()(const RefuseMessage& message) {
    type = "refuse";
    body = {{"exit_code", message.exit_code}, {"reason", as_text(message.reason)}};
  }
};

// ---- from JSON -------------------------------------------------------------------------------

void read(ObjectReader& body, Hello& hello) {
  body.required("min_version", hello.min_version);
  body.required("max_version", hello.max_version);
  body.required("job", hello.job);
  body.required("node", hello.node);
  body.optional("nonce", hello.nonce);
}
void read(ObjectReader& body, Welcome& welcome) {
  body.required("version", welcome.version);
  body.optional("embedded", welcome.embedded);
  body.optional("heartbeat_ms", welcome.heartbeat);
  body.optional("timeout_ms", welcome.timeout);
}
void read(ObjectReader& body, StatusMessage& message) {
  body.required("sequence", message.sequence);
  body.required("status", message.status);
}
void read(ObjectReader& body, OrderMessage& message) {
  body.required("sequence", message.sequence);
  body.required("order", message.order);
}
void read(ObjectReader& body, RefuseMessage& message) {
  body.required("exit_code", message.exit_code);
  body.optional("reason", message.reason);
}

template <typename T>
Result<std::optional<Message>> read_as(const json::object& object) {
  T message;
  std::string error;
  ObjectReader body(object, "body", error);
  read(body, message);
  if (!error.empty()) return Error{std::move(error)};
  return std::optional<Message>(std::move(message));
}

}  // namespace

std::string write_message(const Message& message) {
  ToJson to_json;
  std::visit(to_json, message);
  return json::serialize(json::object{{"type", to_json.type}, {"body", std::move(to_json.body)}});
}

Result<std::optional<Message>> read_message(std::string_view text) {
  boost::system::error_code code;
  const json::value value = json::parse({text.data(), text.size()}, code);
  if (code) return Error{"a message is not JSON: " + code.message()};
  const json::object* envelope = value.if_object();
  const json::value* type_value = envelope == nullptr ? nullptr : envelope->if_contains("type");
  const json::string* type = type_value == nullptr ? nullptr : type_value->if_string();
  if (type == nullptr) return Error{"a message is not an object with a string `type`"};
  static const json::object no_members;
  const json::value* body_value = envelope->if_contains("body");
  const json::object* body = body_value == nullptr ? &no_members : body_value->if_object();
  const std::string_view name(type->data(), type->size());
  if (body == nullptr) return Error{"the `body` of a message is not an object"};
  if (name == "hello") return read_as<Hello>(*body);
  if (name == "welcome") return read_as<Welcome>(*body);
  if (name == "status") return read_as<StatusMessage>(*body);
  if (name == "order") return read_as<OrderMessage>(*body);
  if (name == "refuse") return read_as<RefuseMessage>(*body);
  return std::optional<Message>();
}

}  // namespace ddp::rendezvous
