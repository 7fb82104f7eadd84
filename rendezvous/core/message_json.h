// Messages as JSON text and back: the only place that knows the names of PROTOCOL.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/core/message.h"
#include "rendezvous/core/result.h"

namespace ddp::rendezvous {

// Texts that are longer as JSON (a worker's error file) are cut, so that no frame outgrows its
// limit: to send one that does would be the end of this process.
inline constexpr std::size_t kMaxText = 64 * 1024;

// Bytes that are not UTF-8 become '?': a stray byte in a worker's message must not cost the
// connection.
[[nodiscard]] std::string write_message(const Message& message);

// Empty: a well-formed message of a type that this version doesn't know, to be ignored.
[[nodiscard]] Result<std::optional<Message>> read_message(std::string_view text);

}  // namespace ddp::rendezvous
